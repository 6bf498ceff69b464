#pragma once

#include <chrono>
#include <cstdint>

#include "onced/clock.hpp"
#include "onced/random.hpp"

namespace onced {

// How long to wait before a job is sent again: doubling with every attempt, up to a maximum, with jitter. Any thread.
class Backoff {
public:
  // `first` is raised to 1 ms where it is less, and `max` to `first`; both are cut at limits::retry_delay_max.
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds max);

  // The longest wait after attempt `attempt` (from 1): first * 2^(attempt - 1), at most `max`. Any number is safe.
  [[nodiscard]] MonotonicTime::duration longest_after(std::uint32_t attempt) const;

  // A wait uniformly between half of `longest_after` and all of it, drawn from `random`.
  [[nodiscard]] MonotonicTime::duration after(std::uint32_t attempt, Random &random) const;

private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds max_;
};

} // namespace onced
