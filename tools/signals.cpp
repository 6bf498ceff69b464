#include "signals.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace onced::tools {
namespace {

int checked(int descriptor, const char *call) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), call);
  return descriptor;
}

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

int block_and_open(sigset_t &before) {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, &before);
  return checked(signalfd(-1, &set, SFD_CLOEXEC), "signalfd");
}

} // namespace

StopEvent::StopEvent() : descriptor_(checked(eventfd(0, EFD_CLOEXEC), "eventfd")) {}

StopEvent::~StopEvent() {
  ::close(descriptor_);
}

void StopEvent::request() noexcept {
  if (requested_.exchange(true)) return;
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from its end.
  static_cast<void>(::write(descriptor_, &one, sizeof one) == sizeof one);
}

SignalWatch::SignalWatch(std::function<void(int)> on_first)
    : on_first_(std::move(on_first)), signals_(block_and_open(before_)), thread_([this] { run(); }) {}

SignalWatch::~SignalWatch() {
  stop_.request();
  thread_.join();
  ::close(signals_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalWatch::run() {
  std::array<pollfd, 2> ready{{{signals_, POLLIN, 0}, {stop_.descriptor(), POLLIN, 0}}};
  bool first = true;
  while (!stop_.requested()) {
    if (::poll(ready.data(), ready.size(), -1) < 0 || ready[0].revents == 0) continue;
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (!first) _exit(128 + number);
    first = false;
    on_first_(number);
  }
}

} // namespace onced::tools
