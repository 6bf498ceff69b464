#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "onced/clock.hpp"
#include "onced/limits.hpp"

namespace onced::store {

// Bytes that may be written by and by: so many a second, and as many at once as limits::dead_letter_burst brings. Any
// thread.
class Allowance {
public:
  Allowance(std::uint64_t bytes_a_second, Clock &clock)
      : clock_(clock),
        bytes_a_second_(static_cast<std::int64_t>(std::min(bytes_a_second, limits::dead_letter_bytes_a_second_max))),
        burst_(limits::dead_letter_burst.count() * bytes_a_second_), left_(burst_), counted_at_(clock.monotonic()) {}

  // Whether what was taken has used it up, so that nothing may be written.
  [[nodiscard]] bool used_up() {
    const std::scoped_lock lock(mutex_);
    return left_now() <= 0;
  }

  // False: it is used up. The last that is let through may exceed it, so anything is let through once.
  [[nodiscard]] bool take(std::uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (left_now() <= 0) return false;
    left_ -= static_cast<std::int64_t>(bytes);
    return true;
  }

private:
  // With what time has brought. The mutex is held.
  std::int64_t left_now() {
    using std::chrono::microseconds;
    const MonotonicTime now = clock_.monotonic();
    const auto passed = std::chrono::duration_cast<microseconds>(now - counted_at_);
    const auto longest = microseconds(std::chrono::hours(1)); // far more than a burst, and far from an overflow
    const std::int64_t earned = bytes_a_second_ * std::min(passed, longest).count() / 1'000'000;
    if (earned > 0) {
      left_ = std::min(left_ + earned, burst_);
      counted_at_ = now;
    }
    return left_;
  }

  Clock &clock_;
  const std::int64_t bytes_a_second_;
  const std::int64_t burst_;
  std::mutex mutex_; // guards the rest
  std::int64_t left_;
  MonotonicTime counted_at_;
};

} // namespace onced::store
