#include "signals.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

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

bool is_ignored(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// A hangup that somebody chose to ignore (nohup) stays ignored, unless it is used for something else.
sigset_t watched(bool hangup_is_used) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGQUIT);
  if (hangup_is_used || !is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

int block_and_open(const sigset_t &set, sigset_t &before) {
  pthread_sigmask(SIG_BLOCK, &set, &before);
  return checked(signalfd(-1, &set, SFD_CLOEXEC), "signalfd");
}

} // namespace

void take_over_signals() noexcept {
  for (int number = 1; number < NSIG; ++number) {
    constexpr std::array of_terminals{SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
    const bool is_kept = std::find(of_terminals.begin(), of_terminals.end(), number) != of_terminals.end();
    if (!is_kept && is_ignored(number)) std::signal(number, SIG_DFL);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

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

SignalWatch::SignalWatch(std::function<void(int)> on_stop, std::function<void()> on_hangup)
    : on_stop_(std::move(on_stop)), on_hangup_(std::move(on_hangup)),
      signals_(block_and_open(watched(static_cast<bool>(on_hangup_)), before_)), thread_([this] { run(); }) {}

SignalWatch::~SignalWatch() {
  stop_.request();
  thread_.join();
  ::close(signals_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalWatch::run() {
  std::array<pollfd, 2> ready{{{signals_, POLLIN, 0}, {stop_.descriptor(), POLLIN, 0}}};
  bool stopping = false;
  while (!stop_.requested()) {
    if (::poll(ready.data(), ready.size(), -1) < 0 || ready[0].revents == 0) continue;
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGQUIT || (number == SIGINT && stopping)) _exit(128 + number);
    if (number == SIGHUP && on_hangup_) {
      on_hangup_();
    } else if (!std::exchange(stopping, true)) {
      on_stop_(number);
    }
  }
}

} // namespace onced::tools
