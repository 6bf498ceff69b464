#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

// Where random tests have their seeds from. The environment variable ONCED_TEST_SEED gives one seed to all of them, to
// repeat what failed.
namespace onced::testing {

struct Seed {
  std::uint64_t number = 0;
};
// As a failure names it: a shell reads it too.
inline std::ostream &operator<<(std::ostream &out, Seed seed) {
  return out << "ONCED_TEST_SEED=" << seed.number;
}

[[nodiscard]] inline std::optional<Seed> given_seed() {
  const char *text = std::getenv("ONCED_TEST_SEED"); // NOLINT(concurrency-mt-unsafe): the environment does not change
  if (text == nullptr) return std::nullopt;
  return Seed{std::stoull(text)};
}

// The given one, or this.
[[nodiscard]] inline Seed seed_or(std::uint64_t number) {
  return given_seed().value_or(Seed{number});
}

// The given one, or one that nobody knows before.
[[nodiscard]] inline Seed drawn_seed() {
  return seed_or(std::random_device{}());
}

// The given one alone, or all from 1 to `count`.
[[nodiscard]] inline std::vector<Seed> seeds(std::uint64_t count) {
  if (const auto given = given_seed()) return {*given};
  std::vector<Seed> all;
  for (std::uint64_t number = 1; number <= count; ++number)
    all.push_back({number});
  return all;
}

} // namespace onced::testing
