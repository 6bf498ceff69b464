#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace onced {

// The exact sum of integers and finite doubles, however they cancel: one fixed-point number wide enough for every
// double and for 2^60 of the largest ones.
class ExactSum {
public:
  // `value` must be finite.
  void add(double value);
  void add(std::int64_t value);
  void add(std::uint64_t value);

  // The double nearest to the sum, of two equally near ones the even one. Infinite where that lies beyond all doubles.
  [[nodiscard]] double rounded() const;

  // The sum itself, where it is an integer that fits.
  [[nodiscard]] std::optional<std::int64_t> integer() const;

private:
  static constexpr std::size_t limb_count = 34;
  static constexpr std::size_t limb_bits = 64;
  // The bit worth 1; bit 0 is worth 2^-1074, the smallest double.
  static constexpr std::size_t unit_bit = 1074;
  static_assert(limb_count * limb_bits >= unit_bit + 1024 + 60 + 1, "the largest doubles, 2^60 of them, and a sign");
  using Limbs = std::array<std::uint64_t, limb_count>;

  // Adds or subtracts magnitude * 2^(bit - unit_bit).
  void add(std::uint64_t magnitude, std::size_t bit, bool negative);
  [[nodiscard]] bool is_negative() const { return limbs_.back() >> (limb_bits - 1) != 0; }
  [[nodiscard]] Limbs magnitude() const;

  Limbs limbs_{}; // two's complement, least significant first
};

} // namespace onced
