#include "job/exact_sum.hpp"

#include <bit>
#include <limits>

#include "base/check.hpp"

namespace onced {
namespace {

constexpr std::uint64_t fraction_bits = 52;
constexpr std::uint64_t implicit_bit = std::uint64_t{1} << fraction_bits;
constexpr std::uint64_t exponent_mask = 0x7FF;
constexpr std::uint64_t infinity_bits = exponent_mask << fraction_bits;

// limb + addend + carry; the carry goes in and comes out.
std::uint64_t add_with_carry(std::uint64_t limb, std::uint64_t addend, std::uint64_t &carry) {
  const std::uint64_t partial = limb + addend;
  const std::uint64_t sum = partial + carry;
  carry = static_cast<std::uint64_t>(partial < limb) | static_cast<std::uint64_t>(sum < partial);
  return sum;
}

std::uint64_t subtract_with_borrow(std::uint64_t limb, std::uint64_t subtrahend, std::uint64_t &borrow) {
  const std::uint64_t partial = limb - subtrahend;
  const std::uint64_t difference = partial - borrow;
  borrow = static_cast<std::uint64_t>(limb < subtrahend) | static_cast<std::uint64_t>(partial < borrow);
  return difference;
}

// The 64 bits of `limbs` from `bit` on.
template <class Limbs> std::uint64_t bits_from(const Limbs &limbs, std::size_t bit) {
  const std::size_t limb = bit / 64;
  const std::size_t shift = bit % 64;
  std::uint64_t bits = limbs[limb] >> shift;
  if (shift != 0 && limb + 1 < limbs.size()) bits |= limbs[limb + 1] << (64 - shift);
  return bits;
}

// Whether any of the bits below `bit` is set.
template <class Limbs> bool any_below(const Limbs &limbs, std::size_t bit) {
  for (std::size_t limb = 0; limb < bit / 64; ++limb) {
    if (limbs[limb] != 0) return true;
  }
  const std::size_t shift = bit % 64;
  return shift != 0 && (limbs[bit / 64] << (64 - shift)) != 0;
}

} // namespace

void ExactSum::add(std::uint64_t magnitude, std::size_t bit, bool negative) {
  const std::size_t shift = bit % limb_bits;
  std::size_t limb = bit / limb_bits;
  const std::uint64_t low = magnitude << shift;
  const std::uint64_t high = shift == 0 ? 0 : magnitude >> (limb_bits - shift);
  const auto step = negative ? subtract_with_borrow : add_with_carry;
  std::uint64_t carry = 0;
  limbs_[limb] = step(limbs_[limb], low, carry);
  ++limb;
  limbs_[limb] = step(limbs_[limb], high, carry);
  for (++limb; carry != 0 && limb < limb_count; ++limb) {
    limbs_[limb] = step(limbs_[limb], 0, carry);
  }
}

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t exponent = bits >> fraction_bits & exponent_mask;
  ONCED_CHECK(exponent != exponent_mask);
  const std::uint64_t fraction = bits & (implicit_bit - 1);
  // Exponents 0 (subnormal) and 1 share a scale; only the latter has the implicit bit.
  const bool subnormal = exponent == 0;
  add(subnormal ? fraction : fraction | implicit_bit, subnormal ? 0 : exponent - 1, bits >> 63U != 0);
}

void ExactSum::add(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  add(value < 0 ? 0 - bits : bits, unit_bit, value < 0);
}

void ExactSum::add(std::uint64_t value) {
  add(value, unit_bit, false);
}

ExactSum::Limbs ExactSum::magnitude() const {
  if (!is_negative()) return limbs_;
  Limbs negated{};
  std::uint64_t borrow = 0;
  for (std::size_t limb = 0; limb < limb_count; ++limb) {
    negated[limb] = subtract_with_borrow(0, limbs_[limb], borrow);
  }
  return negated;
}

double ExactSum::rounded() const {
  const Limbs limbs = magnitude();
  std::size_t top_limb = limb_count;
  while (top_limb > 0 && limbs[top_limb - 1] == 0) {
    --top_limb;
  }
  if (top_limb == 0) return 0.0;
  const auto top_bit = top_limb * limb_bits - 1 - static_cast<std::size_t>(std::countl_zero(limbs[top_limb - 1]));

  // Where the top bit is bit 52 or lower, the magnitude's bits are the double's own: a subnormal, or the least
  // exponent.
  std::uint64_t bits = limbs[0];
  if (top_bit > fraction_bits) {
    const std::size_t last_bit = top_bit - fraction_bits;
    const std::uint64_t fraction = bits_from(limbs, last_bit) & (implicit_bit - 1);
    bits = (last_bit + 1) << fraction_bits | fraction;
    const bool half = (bits_from(limbs, last_bit - 1) & 1U) != 0;
    // Rounding up may carry into the exponent, which is then the right one.
    if (half && ((bits & 1U) != 0 || any_below(limbs, last_bit - 1))) ++bits;
    if (bits >= infinity_bits) bits = infinity_bits;
  }
  return std::bit_cast<double>(bits | static_cast<std::uint64_t>(is_negative()) << 63U);
}

std::optional<std::int64_t> ExactSum::integer() const {
  if (any_below(limbs_, unit_bit)) return std::nullopt;
  const auto value = static_cast<std::int64_t>(bits_from(limbs_, unit_bit));
  // It fits where every higher bit repeats its sign.
  const std::uint64_t sign = value < 0 ? ~std::uint64_t{0} : 0;
  for (std::size_t bit = unit_bit + limb_bits; bit + limb_bits <= limb_count * limb_bits; bit += limb_bits) {
    if (bits_from(limbs_, bit) != sign) return std::nullopt;
  }
  const std::size_t last = limb_count * limb_bits - limb_bits;
  if (bits_from(limbs_, last) != sign) return std::nullopt;
  return value;
}

} // namespace onced
