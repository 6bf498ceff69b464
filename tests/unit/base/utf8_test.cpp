#include "base/utf8.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace onced;

namespace {

// The code point written in the shortest way that fits it, surrogates included.
std::string encode(std::uint32_t point) {
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80U | (point >> shift & 0x3FU)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0U | point >> 6U), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0U | point >> 12U), tail(6), tail(0)};
  return {static_cast<char>(0xF0U | point >> 18U), tail(12), tail(6), tail(0)};
}

} // namespace

TEST_CASE("every code point but the surrogates is valid UTF-8") {
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    if (utf8::valid(encode(point)) == surrogate) FAIL_CHECK("code point ", point);
  }
}

TEST_CASE("a code point beyond the last is no UTF-8") {
  CHECK_FALSE(utf8::valid(encode(0x110000)));
  CHECK_FALSE(utf8::valid(encode(0x13FFFF)));
  CHECK_FALSE(utf8::valid("\xF5\x80\x80\x80"));
  CHECK_FALSE(utf8::valid("\xFF"));
}

TEST_CASE("overlong forms are no UTF-8") {
  CHECK_FALSE(utf8::valid("\xC0\x80"));
  CHECK_FALSE(utf8::valid("\xC1\xBF"));
  CHECK_FALSE(utf8::valid("\xE0\x9F\xBF"));
  CHECK_FALSE(utf8::valid("\xF0\x8F\xBF\xBF"));
}

TEST_CASE("sequences cut short or without a lead are no UTF-8") {
  CHECK_FALSE(utf8::valid("\xC3"));
  CHECK_FALSE(utf8::valid("\xE2\x82"));
  CHECK_FALSE(utf8::valid("\xF0\x9F\x98"));
  CHECK_FALSE(utf8::valid("\x80"));
  CHECK_FALSE(utf8::valid("\xE2\x82g"));
  // What lies behind the end would complete the sequence.
  CHECK_FALSE(utf8::valid(std::string_view("\xE2\x82\xAC").substr(0, 2)));
  CHECK_FALSE(utf8::valid(std::string_view("\xC3\xA9").substr(0, 1)));
}

TEST_CASE("a bad byte is found at every place of a long text") {
  const std::string good = "0123456789abcdef0123456789abcdef";
  CHECK(utf8::valid(good));
  for (std::size_t at = 0; at < good.size(); ++at) {
    CAPTURE(at);
    std::string bad = good;
    bad[at] = '\xC3';
    CHECK_FALSE(utf8::valid(bad));
  }
}

TEST_CASE("repair keeps valid text and replaces each stray byte") {
  CHECK(utf8::repaired("na\xC3\xAFve", 100) == "na\xC3\xAFve");
  CHECK(utf8::repaired("a\xFF"
                       "b\xC3",
                       100) == "a\xEF\xBF\xBD"
                               "b\xEF\xBF\xBD");
}

TEST_CASE("repair replaces a sequence cut short by the end") {
  CHECK(utf8::repaired(std::string_view("\xE2\x82\xAC").substr(0, 2), 100) == "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("repair cuts between code points") {
  CHECK(utf8::repaired("ab\xC3\xA9", 3) == "ab");
  CHECK(utf8::repaired("ab\xC3\xA9", 4) == "ab\xC3\xA9");
  CHECK(utf8::repaired("\xFF\xFF", 5) == "\xEF\xBF\xBD");
}
