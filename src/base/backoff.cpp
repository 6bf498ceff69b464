#include "base/backoff.hpp"

#include <algorithm>

#include "onced/limits.hpp"

namespace onced {

namespace {
constexpr std::chrono::milliseconds shortest{1};
} // namespace

Backoff::Backoff(std::chrono::milliseconds first, std::chrono::milliseconds max)
    : first_(std::clamp<std::chrono::milliseconds>(first, shortest, limits::retry_delay_max)),
      max_(std::clamp<std::chrono::milliseconds>(max, first_, limits::retry_delay_max)) {}

MonotonicTime::duration Backoff::longest_after(std::uint32_t attempt) const {
  std::chrono::milliseconds wait = first_;
  // Stops at the maximum, which retry_delay_max keeps far from overflow: some 30 rounds at most.
  for (std::uint32_t round = 1; round < attempt && wait < max_; ++round)
    wait *= 2;
  return std::min(wait, max_);
}

// Jobs that were sent together time out together after an outage; without jitter they would return as one storm, again
// and again. Half to all, and not around the value, so that the configured times stay what they say: the longest wait.
MonotonicTime::duration Backoff::after(std::uint32_t attempt, Random &random) const {
  const MonotonicTime::duration longest = longest_after(attempt);
  const MonotonicTime::duration half = longest / 2;
  const auto choices = static_cast<std::uint64_t>((longest - half).count()) + 1;
  // The remainder's bias is below 2^-17 for a day in nanoseconds.
  return half + MonotonicTime::duration(static_cast<MonotonicTime::rep>(random.next() % choices));
}

} // namespace onced
