#pragma once

#include <cstdint>

#include "onced/clock.hpp"
#include "onced/random.hpp"

namespace simulation {

// All chance of one world, drawn from one seed. The biases of the remainders do not matter here.
class Chance {
public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_.next() % bound; }
  bool happens(std::uint64_t percent) { return percent > 0 && below(100) < percent; }
  std::uint64_t bits() { return random_.next(); }

  // From nothing to all of it.
  onced::MonotonicTime::duration up_to(onced::MonotonicTime::duration longest) {
    return onced::MonotonicTime::duration(
        static_cast<onced::MonotonicTime::rep>(below(static_cast<std::uint64_t>(longest.count()) + 1)));
  }

  onced::Random &source() { return random_; }

private:
  onced::SeededRandom random_;
};

// A fixed number drawn from another (the finaliser of SplitMix64).
constexpr std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31U);
}

} // namespace simulation
