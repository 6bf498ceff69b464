#include "output.hpp"

#include <cerrno>
#include <system_error>

#include <poll.h>
#include <unistd.h>

namespace onced::tools {
namespace {

// One write of this size costs little a line; more gains nothing.
constexpr std::size_t waiting_bytes_max = 64 * 1024;

} // namespace

void Output::line(const Json &object) {
  std::string text = dump(object);
  text += '\n';
  this->text(text);
}

void Output::text(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  append(text);
}

void Output::append(std::string_view text) {
  if (failure_ != 0) return;
  waiting_ += text;
  if (waiting_.size() >= waiting_bytes_max) write_all();
}

void Output::write_all() {
  std::size_t written = 0;
  while (failure_ == 0 && written < waiting_.size()) {
    const ssize_t count = ::write(descriptor_, waiting_.data() + written, waiting_.size() - written);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) { // someone made the descriptor non-blocking: wait as if it were not
      pollfd ready{descriptor_, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      failure_ = errno;
    }
  }
  waiting_.clear();
}

Result<void> Output::flush() {
  const std::scoped_lock lock(mutex_);
  write_all();
  if (failure_ == 0) return {};
  return tl::unexpected(Error{ErrorCode::store_unavailable, "standard output",
                              std::generic_category().message(failure_),
                              "what was printed is incomplete; run it again with an output that takes it"});
}

ExitCode finish(Output &output, ExitCode code) {
  const auto flushed = output.flush();
  return flushed ? code : report(flushed.error());
}

bool Output::failed() const {
  const std::scoped_lock lock(mutex_);
  return failure_ != 0;
}

} // namespace onced::tools
