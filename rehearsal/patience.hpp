#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "onced/clock.hpp"
#include "rehearsal/failures.hpp"

namespace onced::rehearsal {

// How everything of a rehearsal waits. Any thread.
class Patience {
public:
  // How long anything may take before it is given up: far more than a loaded machine needs.
  static constexpr std::chrono::seconds time_max{30};

  // `interrupted`: whether the rehearsal is to end.
  Patience(Clock &clock, std::function<bool()> interrupted) : clock_(clock), interrupted_(std::move(interrupted)) {}

  // Waits until the condition holds. Throws StageFailure, which names what was waited for, or Interrupted.
  template <class Condition> void wait_until(const Condition &condition, const std::string &waited_for) const {
    const MonotonicTime deadline = clock_.monotonic() + time_max;
    while (!condition()) {
      check();
      if (clock_.monotonic() >= deadline) throw StageFailure("waited in vain for " + waited_for);
      std::this_thread::sleep_for(pause_between_looks);
    }
  }

  // Throws Interrupted where the rehearsal is to end.
  void check() const {
    if (interrupted_()) throw Interrupted();
  }

  [[nodiscard]] Clock &clock() const { return clock_; }

private:
  static constexpr std::chrono::milliseconds pause_between_looks{2};

  Clock &clock_;
  std::function<bool()> interrupted_;
};

} // namespace onced::rehearsal
