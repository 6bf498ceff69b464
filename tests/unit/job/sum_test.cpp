#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "onced/handler.hpp"
#include "onced/limits.hpp"
#include "unit/job/support.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

constexpr auto least_integer = std::numeric_limits<std::int64_t>::min();
constexpr auto greatest_integer = std::numeric_limits<std::int64_t>::max();
constexpr double largest_double = std::numeric_limits<double>::max();

Bytes numbers(const std::vector<Bytes> &items) {
  Bytes bytes;
  messagepack::Writer writer(bytes);
  writer.map(1).string("numbers").array(items.size());
  for (const Bytes &item : items) {
    writer.raw(item);
  }
  return bytes;
}

HandlerResult run(BytesView payload) {
  return sum_handler({"demo-1", "sum", "", payload});
}

// The result in hexadecimal of its canonical form, or what was said instead.
std::string sum_of(BytesView payload) {
  const HandlerResult result = run(payload);
  if (const auto *done = std::get_if<Done>(&result)) return canonical_hex(done->result);
  if (const auto *failed = std::get_if<Failed>(&result)) return "failed: " + failed->detail;
  return "invalid: " + std::get<Invalid>(result).detail;
}

std::string hex_of(const Bytes &value) {
  return to_hex(value);
}

} // namespace

TEST_CASE("integers add up") {
  CHECK(sum_of(numbers({integer(1), integer(2), integer(3)})) == "06");
  CHECK(sum_of(numbers({integer(-5), integer(2)})) == hex_of(integer(-3)));
  CHECK(sum_of(numbers({integer(9)})) == "09");
}

TEST_CASE("no numbers add up to zero") {
  CHECK(sum_of(numbers({})) == "00");
}

TEST_CASE("integers beyond 2^53 stay exact") {
  const std::int64_t big = std::int64_t{1} << 53U;
  CHECK(sum_of(numbers({integer(big), integer(1)})) == hex_of(integer(big + 1)));
  CHECK(sum_of(numbers({integer(greatest_integer)})) == hex_of(integer(greatest_integer)));
  CHECK(sum_of(numbers({integer(least_integer)})) == hex_of(integer(least_integer)));
}

TEST_CASE("an integer sum beyond 64 bits fails as overflow") {
  CHECK(sum_of(numbers({integer(greatest_integer), integer(1)})).starts_with("failed: overflow"));
  CHECK(sum_of(numbers({integer(least_integer), integer(-1)})).starts_with("failed: overflow"));
  CHECK(sum_of(numbers({hex("cfffffffffffffffff")})).starts_with("failed: overflow"));
}

TEST_CASE("an overflow on the way does not matter") {
  CHECK(sum_of(numbers({integer(greatest_integer), integer(1), integer(-1)})) == hex_of(integer(greatest_integer)));
  CHECK(sum_of(numbers({integer(least_integer), integer(-1), integer(1)})) == hex_of(integer(least_integer)));
  CHECK(sum_of(numbers({hex("cfffffffffffffffff"), integer(least_integer), integer(least_integer)})) == "ff");
}

TEST_CASE("65536 of the largest integers and as many of the least sum exactly") {
  std::vector<Bytes> items(32'768, hex("cfffffffffffffffff"));
  items.resize(65'535, integer(least_integer));
  // 32768 * (2^64 - 1) - 32767 * 2^63 lies far beyond 64 bits.
  CHECK(sum_of(numbers(items)).starts_with("failed: overflow"));
  items.assign(21'845, hex("cfffffffffffffffff"));
  items.resize(65'535, integer(least_integer));
  // 21845 * (2^64 - 1) - 43690 * 2^63 = -21845
  CHECK(sum_of(numbers(items)) == hex_of(integer(-21'845)));
}

TEST_CASE("one float makes the sum the correctly rounded float") {
  CHECK(sum_of(numbers({floating(0.1), floating(0.2), floating(0.3)})) == hex_of(floating(0.6)));
  CHECK(sum_of(numbers(std::vector<Bytes>(10, floating(0.1)))) == "01");
  CHECK(sum_of(numbers({floating(1e308), floating(1e308), floating(-1e308)})) == hex_of(floating(1e308)));
  CHECK(sum_of(numbers({integer(greatest_integer), floating(0.5)})) == hex_of(floating(9223372036854775808.0)));
  CHECK(sum_of(numbers({integer(greatest_integer), integer(greatest_integer), floating(0.5)})) ==
        hex_of(floating(18446744073709551616.0)));
  CHECK(sum_of(numbers({hex("cfffffffffffffffff"), floating(-18446744073709551616.0)})) == "ff");
  CHECK(sum_of(numbers({floating(1e300), integer(1), floating(-1e300)})) == "01");
}

TEST_CASE("an integral sum of floats becomes the integer") {
  CHECK(sum_of(numbers({floating(0.5), floating(0.5)})) == "01");
  CHECK(sum_of(numbers({floating(0.5), floating(-0.5)})) == "00");
}

TEST_CASE("an infinite sum fails as overflow") {
  CHECK(sum_of(numbers({floating(largest_double), floating(largest_double)})).starts_with("failed: overflow"));
  CHECK(sum_of(numbers({floating(-largest_double), floating(-largest_double)})).starts_with("failed: overflow"));
}

TEST_CASE("65536 numbers are summed and one more is invalid") {
  CHECK(sum_of(numbers(std::vector<Bytes>(limits::sum_numbers_max, integer(1)))) == hex_of(integer(65'536)));
  CHECK(sum_of(numbers(std::vector<Bytes>(limits::sum_numbers_max, floating(largest_double))))
            .starts_with("failed: overflow"));
  CHECK(sum_of(numbers(std::vector<Bytes>(limits::sum_numbers_max + 1, integer(1)))) ==
        "invalid: \"numbers\" has 65537 elements, more than 65536");
}

TEST_CASE("a payload without numbers is invalid") {
  CHECK(sum_of(hex("80")) == "invalid: the field \"numbers\" is missing");
}

TEST_CASE("a field that sum does not know is invalid before and after numbers") {
  CHECK(sum_of(map_of({{"extra", integer(1)}, {"numbers", hex("9101")}})) == "invalid: sum knows no field \"extra\"");
  CHECK(sum_of(map_of({{"numbers", hex("9101")}, {"other", integer(1)}})) == "invalid: sum knows no field \"other\"");
  CHECK(sum_of(map_of({{"Numbers", hex("9101")}})) == "invalid: sum knows no field \"Numbers\"");
}

TEST_CASE("numbers that are no array are invalid") {
  for (const std::string_view other : {"c0", "01", "ff", "c2", "a161", "c40161", "80", "cb3fe0000000000000"}) {
    CAPTURE(other);
    CHECK(sum_of(map_of({{"numbers", hex(other)}})) == "invalid: \"numbers\" is no array");
  }
}

TEST_CASE("elements that are no numbers are invalid") {
  for (const std::string_view other : {"c0", "c2", "a131", "c40131", "80", "90", "cb7ff8000000000000", "d40100"}) {
    CAPTURE(other);
    CHECK(sum_of(numbers({integer(1), hex(other)})) ==
          "invalid: \"numbers\" holds something that is neither an integer nor a finite float");
  }
}

TEST_CASE("bytes that are no payload are invalid") {
  CHECK(sum_of("").starts_with("invalid: "));
  CHECK(sum_of(hex("9101")).starts_with("invalid: "));
  CHECK(sum_of(hex("81")).starts_with("invalid: "));
  CHECK(sum_of(hex("810101")).starts_with("invalid: "));
  CHECK(sum_of(numbers({integer(1)}) + 'x').starts_with("invalid: "));
}
