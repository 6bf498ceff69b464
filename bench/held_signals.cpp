#include "held_signals.hpp"

#include <algorithm>
#include <array>

namespace onced::bench {
namespace {

constexpr std::array<int, 3> held{SIGINT, SIGTERM, SIGHUP};

sigset_t held_set() {
  sigset_t set{};
  sigemptyset(&set);
  for (const int number : held)
    sigaddset(&set, number);
  return set;
}

// As under nohup; blocked, it waits all the same.
bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

HeldSignals::HeldSignals() {
  const sigset_t set = held_set();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

HeldSignals::~HeldSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool HeldSignals::pending() {
  sigset_t waiting{};
  return ::sigpending(&waiting) == 0 && std::any_of(held.begin(), held.end(), [&](int number) {
           return sigismember(&waiting, number) == 1 && !is_ignored(number);
         });
}

} // namespace onced::bench
