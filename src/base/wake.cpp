#include "base/wake.hpp"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

namespace onced {

Wake::Wake() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.is_open()) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Wake::ring() {
  const std::uint64_t one = 1;
  // It can only fail where the counter is full, and then the bell is ringing.
  static_cast<void>(::write(event_.number(), &one, sizeof one));
}

void Wake::clear() {
  std::uint64_t count = 0;
  static_cast<void>(::read(event_.number(), &count, sizeof count));
}

} // namespace onced
