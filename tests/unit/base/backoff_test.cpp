// Verifies the waits between attempts: their bounds, their spread and that no number overflows. Not verified: that
// anyone waits so long (redelivery_test.cpp).
#include "base/backoff.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "support/seeds.hpp"

namespace {

using namespace std::chrono_literals;
using onced::Backoff;

// The lowest and the highest number there is.
class FixedRandom final : public onced::Random {
public:
  explicit FixedRandom(std::uint64_t bits) : bits_(bits) {}
  [[nodiscard]] std::uint64_t next() override { return bits_; }

private:
  std::uint64_t bits_;
};

} // namespace

TEST_CASE("the wait doubles with every attempt up to the maximum") {
  const Backoff backoff(1000ms, 30'000ms);
  CHECK(backoff.longest_after(1) == 1s);
  CHECK(backoff.longest_after(2) == 2s);
  CHECK(backoff.longest_after(3) == 4s);
  CHECK(backoff.longest_after(5) == 16s);
  CHECK(backoff.longest_after(6) == 30s);
  CHECK(backoff.longest_after(7) == 30s);
}

TEST_CASE("no attempt number and no option overflows") {
  const std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t attempt : {0U, 1U, 31U, 32U, 33U, 63U, 64U, 65U, last - 1, last}) {
    CAPTURE(attempt);
    const auto wait = Backoff(1000ms, 30'000ms).longest_after(attempt);
    CHECK(wait == (attempt <= 1 ? 1s : 30s));
    CHECK(Backoff(std::chrono::milliseconds::max(), std::chrono::milliseconds::max()).longest_after(attempt) ==
          onced::limits::retry_delay_max);
  }
}

TEST_CASE("a wait is never zero whatever the options") {
  CHECK(Backoff(0ms, 0ms).longest_after(1) == 1ms);
  CHECK(Backoff(-5ms, -7ms).longest_after(9) == 1ms);
  CHECK(Backoff(100ms, 10ms).longest_after(9) == 100ms);
}

TEST_CASE("jitter spreads waits over the whole upper half and never beyond") {
  const Backoff backoff(1000ms, 30'000ms);
  FixedRandom lowest(0);
  CHECK(backoff.after(1, lowest) == 500ms);
  CHECK(backoff.after(60, lowest) == 15s);
  FixedRandom highest(500'000'000);
  CHECK(backoff.after(1, highest) == 1s);

  const auto seed = onced::testing::seed_or(7);
  CAPTURE(seed);
  onced::SeededRandom random(seed.number);
  onced::MonotonicTime::duration least = 1h;
  onced::MonotonicTime::duration most = 0s;
  onced::MonotonicTime::duration sum = 0s;
  for (int draw = 0; draw < 10'000; ++draw) {
    const auto wait = backoff.after(2, random);
    least = std::min(least, wait);
    most = std::max(most, wait);
    sum += wait;
  }
  CHECK(least >= 1s);
  CHECK(least < 1010ms);
  CHECK(most <= 2s);
  CHECK(most > 1990ms);
  CHECK(sum / 10'000 > 1480ms);
  CHECK(sum / 10'000 < 1520ms);
}
