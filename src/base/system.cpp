#include <cerrno>
#include <system_error>

#include <sys/random.h>

#include "onced/clock.hpp"
#include "onced/random.hpp"

namespace onced {

WallTime SystemClock::wall() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

MonotonicTime SystemClock::monotonic() {
  return std::chrono::steady_clock::now();
}

std::uint64_t SystemRandom::next() {
  std::uint64_t bits = 0;
  // getrandom(2): up to 256 bytes are never returned in part once the generator is initialised.
  while (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return bits;
}

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
std::uint64_t SeededRandom::next() {
  const std::scoped_lock lock(mutex_);
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t bits = state_;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31U);
}

} // namespace onced
