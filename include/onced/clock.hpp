#pragma once

#include <chrono>

namespace onced {

// Wall time in microseconds since 1970 UTC. It may step either way, so onced only records it: no timer depends on it.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
// The time of timers, leases and deadlines. It never goes back.
using MonotonicTime = std::chrono::steady_clock::time_point;

// Where the time comes from. A caller passes a clock in, so a simulation or a test decides what time it is. The
// caller owns the clock, which must outlive every object that it was passed to.
class Clock {
public:
  virtual ~Clock() = default;
  // What a calendar says now. Any thread may call it; it does not fail.
  [[nodiscard]] virtual WallTime wall() = 0;
  // The time since an arbitrary beginning. Any thread may call it; it does not fail. A later call never returns less.
  [[nodiscard]] virtual MonotonicTime monotonic() = 0;
};

// The clocks of the operating system: the wall clock and CLOCK_MONOTONIC. It has no state.
class SystemClock final : public Clock {
public:
  [[nodiscard]] WallTime wall() override;
  [[nodiscard]] MonotonicTime monotonic() override;
};

} // namespace onced
