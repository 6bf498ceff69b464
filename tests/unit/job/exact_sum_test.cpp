#include "job/exact_sum.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "onced/random.hpp"
#include "support/seeds.hpp"

using namespace onced;
using testing::Seed;
using testing::seeds;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double largest = std::numeric_limits<double>::max();
constexpr double least = std::numeric_limits<double>::denorm_min();

double rounded(const std::vector<double> &values) {
  ExactSum sum;
  for (const double value : values) {
    sum.add(value);
  }
  return sum.rounded();
}

// A slow exact number, built quite otherwise: one counter for each power of two, carried only to learn the sign.
class Counters {
public:
  void add(double value, std::int64_t times) {
    int exponent = 0;
    const auto scaled = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    const std::int64_t step = scaled < 0 ? -times : times;
    for (int bit = 0; bit < 53; ++bit) {
      if ((std::llabs(scaled) >> bit & 1) != 0) counters_[index(exponent - 53 + bit)] += step;
    }
  }
  void add_power_of_two(int exponent, std::int64_t times) { counters_[index(exponent)] += times; }

  [[nodiscard]] int sign() const {
    std::int64_t carry = 0;
    bool any = false;
    for (const std::int64_t counter : counters_) {
      const std::int64_t whole = counter + carry;
      any = any || (whole & 1) != 0;
      carry = whole >> 1;
    }
    if (carry != 0) return carry < 0 ? -1 : 1;
    return any ? 1 : 0;
  }

private:
  static std::size_t index(int exponent) { return static_cast<std::size_t>(std::ptrdiff_t{exponent} + 1200); }
  std::array<std::int64_t, 2400> counters_{};
};

// Whether `result` is the double nearest to the sum of `values`: the sum lies on its side of the midpoints to both
// neighbours, or on a midpoint when `result` is even.
bool is_nearest(const std::vector<double> &values, double result) {
  for (const bool above : {true, false}) {
    const double neighbour = std::nextafter(result, above ? infinity : -infinity);
    if (neighbour == result) continue;
    Counters twice; // 2 * sum - result - neighbour
    for (const double value : values) {
      twice.add(value, 2);
    }
    for (const double end : {result, neighbour}) {
      if (std::isinf(end)) {
        twice.add_power_of_two(1024, end > 0 ? -1 : 1);
      } else {
        twice.add(end, -1);
      }
    }
    const int side = twice.sign();
    const bool odd = (std::bit_cast<std::uint64_t>(result) & 1U) != 0;
    if (side == (above ? 1 : -1) || (side == 0 && odd)) return false;
  }
  return true;
}

// A finite double: exponents near each other make ties and cancellation likely.
double random_double(Random &random, bool anywhere) {
  for (;;) {
    std::uint64_t bits = random.next();
    if (!anywhere) bits = (bits & ~(0x7FFULL << 52U)) | (1000 + random.next() % 70) << 52U;
    // Few significant bits, so that sums meet midpoints.
    if (random.next() % 2 == 0) bits &= ~std::uint64_t{0} << (random.next() % 52);
    const auto value = std::bit_cast<double>(bits);
    if (std::isfinite(value)) return value;
  }
}

} // namespace

TEST_CASE("nothing adds up to zero") {
  CHECK(ExactSum().rounded() == 0.0);
  CHECK_FALSE(std::signbit(rounded({-0.0, -0.0})));
  CHECK_FALSE(std::signbit(rounded({1.5, -1.5})));
}

TEST_CASE("a single double of any size is its own sum") {
  for (const double value :
       {0.1, 1.0, -1.0, 1e-300, least, 3 * least, -least, std::numeric_limits<double>::min(),
        std::nextafter(std::numeric_limits<double>::min(), 0.0), largest, -largest, 4503599627370496.0}) {
    CAPTURE(value);
    CHECK(rounded({value}) == value);
  }
}

TEST_CASE("large numbers that cancel leave the small ones") {
  CHECK(rounded({1e308, 1e308, -1e308}) == 1e308);
  CHECK(rounded({largest, largest, -largest, -largest, least}) == least);
  CHECK(rounded({1e100, 1.0, -1e100}) == 1.0);
  CHECK(rounded({-1e16, 1e-16, 1e16}) == 1e-16);
}

TEST_CASE("ten tenths are one and a third of small change is exact") {
  CHECK(rounded(std::vector<double>(10, 0.1)) == 1.0);
  CHECK(rounded({0.1, 0.2, 0.3}) == 0.6);
}

TEST_CASE("a tie goes to the even double and the smallest bit breaks it") {
  CHECK(rounded({9007199254740992.0, 1.0}) == 9007199254740992.0);
  CHECK(rounded({9007199254740994.0, 1.0}) == 9007199254740996.0);
  CHECK(rounded({9007199254740992.0, 1.0, least}) == 9007199254740994.0);
  CHECK(rounded({9007199254740994.0, 1.0, -least}) == 9007199254740994.0);
  CHECK(rounded({-9007199254740992.0, -1.0}) == -9007199254740992.0);
  CHECK(rounded({-9007199254740992.0, -1.0, -least}) == -9007199254740994.0);
}

TEST_CASE("rounding may carry into the next power of two") {
  CHECK(rounded({9007199254740991.0, 0.5}) == 9007199254740992.0);
  CHECK(rounded({2.0, -std::numeric_limits<double>::epsilon() / 4}) == 2.0);
}

TEST_CASE("subnormal sums are exact") {
  CHECK(rounded({least, least}) == 2 * least);
  CHECK(rounded({std::numeric_limits<double>::min(), -least}) ==
        std::nextafter(std::numeric_limits<double>::min(), 0.0));
  CHECK(rounded(std::vector<double>(1000, least)) == 1000 * least);
}

TEST_CASE("sums beyond the largest double are infinite from the midpoint on") {
  const double half_step = std::ldexp(1.0, 970);
  CHECK(rounded({largest, half_step}) == infinity);
  CHECK(rounded({largest, half_step, -least}) == largest);
  CHECK(rounded({-largest, -half_step}) == -infinity);
  CHECK(rounded({largest, largest}) == infinity);
}

TEST_CASE("65536 of the largest doubles do not overflow inside") {
  ExactSum sum;
  for (int at = 0; at < 65'536; ++at) {
    sum.add(largest);
  }
  CHECK(sum.rounded() == infinity);
  for (int at = 0; at < 2 * 65'536; ++at) {
    sum.add(-largest);
  }
  CHECK(sum.rounded() == -infinity);
  for (int at = 0; at < 65'536 - 1; ++at) {
    sum.add(largest);
  }
  CHECK(sum.rounded() == -largest);
}

TEST_CASE("integers add exactly beside doubles") {
  ExactSum sum;
  sum.add(std::numeric_limits<std::int64_t>::max());
  sum.add(std::numeric_limits<std::uint64_t>::max());
  sum.add(std::numeric_limits<std::int64_t>::min());
  CHECK_FALSE(sum.integer().has_value());
  sum.add(-18446744073709551616.0);
  CHECK(sum.integer() == -2);
  sum.add(0.5);
  CHECK_FALSE(sum.integer().has_value());
  CHECK(sum.rounded() == -1.5);
}

TEST_CASE("the integer fits from the least to the greatest of 64 bits") {
  constexpr auto least_integer = std::numeric_limits<std::int64_t>::min();
  constexpr auto greatest_integer = std::numeric_limits<std::int64_t>::max();
  ExactSum low;
  low.add(least_integer);
  CHECK(low.integer() == least_integer);
  low.add(std::int64_t{-1});
  CHECK_FALSE(low.integer().has_value());
  ExactSum high;
  high.add(greatest_integer);
  CHECK(high.integer() == greatest_integer);
  high.add(std::int64_t{1});
  CHECK_FALSE(high.integer().has_value());
  ExactSum huge;
  huge.add(largest);
  CHECK_FALSE(huge.integer().has_value());
  CHECK(ExactSum().integer() == 0);
}

TEST_CASE("random sums are the nearest double by an independent reckoning") {
  for (const Seed seed : seeds(4000)) {
    CAPTURE(seed);
    SeededRandom random(seed.number);
    std::vector<double> values(1 + random.next() % 12);
    for (double &value : values) {
      value = random_double(random, seed.number % 3 == 0);
    }
    REQUIRE(is_nearest(values, rounded(values)));
  }
}

TEST_CASE("random sums with their negatives cancel to what is left") {
  for (const Seed seed : seeds(500)) {
    CAPTURE(seed);
    SeededRandom random(seed.number);
    ExactSum sum;
    const double rest = random_double(random, true);
    std::vector<double> values(50);
    for (double &value : values) {
      value = random_double(random, true);
      sum.add(value);
    }
    sum.add(rest);
    for (const double value : values) {
      sum.add(-value);
    }
    REQUIRE(sum.rounded() == rest);
  }
}

TEST_CASE("the independent reckoning itself sees a wrong neighbour") {
  CHECK(is_nearest({0.1, 0.2, 0.3}, 0.6));
  CHECK_FALSE(is_nearest({0.1, 0.2, 0.3}, std::nextafter(0.6, 1.0)));
  CHECK_FALSE(is_nearest({0.1, 0.2, 0.3}, std::nextafter(0.6, 0.0)));
}
