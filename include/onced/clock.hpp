#pragma once

#include <chrono>

namespace onced {

// Wall time in microseconds since 1970 UTC. It is only recorded: no timer depends on it.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
// Time for timers. It never goes back.
using MonotonicTime = std::chrono::steady_clock::time_point;

// Where the time comes from. Passed in, so that simulation and tests decide what time it is.
class Clock {
public:
  virtual ~Clock() = default;
  // Both may be called from any thread.
  [[nodiscard]] virtual WallTime wall() = 0;
  [[nodiscard]] virtual MonotonicTime monotonic() = 0;
};

// The clocks of the operating system.
class SystemClock final : public Clock {
public:
  [[nodiscard]] WallTime wall() override;
  [[nodiscard]] MonotonicTime monotonic() override;
};

} // namespace onced
