#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace onced::crash {

// Every choice of a round, drawn from its seed.
class Dice {
public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  // Both ends included.
  template <typename Number> [[nodiscard]] Number between(Number low, Number high) {
    return std::uniform_int_distribution<Number>(low, high)(random_);
  }
  // One time in so many.
  [[nodiscard]] bool one_in(unsigned times) { return between(1U, times) == 1; }
  template <typename Item> [[nodiscard]] const Item &one_of(const std::vector<Item> &items) {
    return items[between<std::size_t>(0, items.size() - 1)];
  }
  template <typename Item> void shuffle(std::vector<Item> &items) { std::shuffle(items.begin(), items.end(), random_); }

private:
  std::mt19937_64 random_;
};

} // namespace onced::crash
