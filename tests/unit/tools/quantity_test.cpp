#include "quantity.hpp"

#include <doctest/doctest.h>

using namespace onced;
using namespace onced::tools;
using namespace std::chrono_literals;

TEST_CASE("a duration is a whole number and its unit") {
  CHECK(parse_duration("500ms").value() == 500ms);
  CHECK(parse_duration("60s").value() == 60s);
  CHECK(parse_duration("5m").value() == 5min);
  CHECK(parse_duration("2h").value() == 2h);
  CHECK(parse_duration("0s").value() == 0s);
  CHECK(parse_duration("8760h").value() == duration_max);
}

TEST_CASE("a duration without a unit or with more than a number and a unit is refused") {
  for (const char *text : {"", "60", "s", "1.5s", "-1s", "+1s", " 1s", "1 s", "1s ", "1S", "1d", "0x1s", "1ms2"}) {
    CAPTURE(text);
    const auto duration = parse_duration(text);
    REQUIRE_FALSE(duration.has_value());
    CHECK(duration.error().code == ErrorCode::usage);
  }
}

TEST_CASE("a duration beyond a year is refused and not wrapped around") {
  for (const char *text : {"8761h", "9223372036854775807h", "9223372036854775808ms", "99999999999999999999s"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text).has_value());
  }
}

TEST_CASE("a size is a whole number and its unit in either case") {
  CHECK(parse_size("0").value() == 0);
  CHECK(parse_size("1048576").value() == 1'048'576);
  CHECK(parse_size("7B").value() == 7);
  CHECK(parse_size("512MiB").value() == 512U * 1024 * 1024);
  CHECK(parse_size("1gb").value() == 1'000'000'000);
  CHECK(parse_size("4GIB").value() == std::uint64_t{4} * 1024 * 1024 * 1024);
  CHECK(parse_size("1024TiB").value() == size_max);
}

TEST_CASE("a size that is none, or more than a machine has, is refused and not wrapped around") {
  for (const char *text :
       {"", "MiB", "-1", "-1MiB", "+1MiB", " 1MiB", "1 MiB", "1MiB ", "1.5GiB", "1e3", "1e3MiB", "0x10", "1MiBs", "1M",
        "1025TiB", "18446744073709551615", "18446744073709551616", "17592186044416MiB", "nan"}) {
    CAPTURE(text);
    const auto size = parse_size(text);
    REQUIRE_FALSE(size.has_value());
    CHECK(size.error().code == ErrorCode::usage);
  }
}
