#include "base/numbers.hpp"

#include <doctest/doctest.h>

using namespace onced;

TEST_CASE("a whole number is its digits and lies in its range") {
  CHECK(parse_whole("0", 0, 10).value() == 0);
  CHECK(parse_whole("10", 0, 10).value() == 10);
  CHECK(parse_whole("007", 0, 10).value() == 7);
  CHECK(parse_whole("18446744073709551615", 0, UINT64_MAX).value() == UINT64_MAX);
  for (const char *text : {"", "-1", "-0", "+1", " 1", "1 ", "0x10", "1e3", "1.0", "1,0", "11", "18446744073709551616",
                           "99999999999999999999999", "nan", "ten"}) {
    CAPTURE(text);
    const auto number = parse_whole(text, 0, 10);
    REQUIRE_FALSE(number.has_value());
    CHECK(number.error().code == ErrorCode::usage);
    CHECK(number.error().cause == "not a whole number from 0 to 10");
  }
  CHECK_FALSE(parse_whole("18446744073709551616", 0, UINT64_MAX).has_value());
  CHECK_FALSE(parse_whole("0", 1, 10).has_value());
}

TEST_CASE("a decimal is finite and lies in its range") {
  CHECK(parse_decimal("0.25", 0, 1).value() == 0.25);
  CHECK(parse_decimal("1e-1", 0, 1).value() == 0.1);
  for (const char *text :
       {"", "-0.1", "-0", "+0.1", " 0.1", "0.1 ", "0x1p-1", "1.1", "1e3", "nan", "inf", ".5", "1e999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_decimal(text, 0, 1).has_value());
  }
  CHECK(parse_decimal("2", 0, 1).error().cause == "not a number from 0 to 1");
}
