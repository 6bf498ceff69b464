#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onced/random.hpp"
#include "support/seeds.hpp"
#include "unit/job/support.hpp"

// The canonical form of single values; the vectors hold more cases. These tests do not show that another implementation
// agrees: vectors_test.cpp does.
using namespace onced;
using namespace onced::testing;

TEST_CASE("an integer in any width takes its shortest form") {
  for (const std::string_view one : {"01", "cc01", "cd0001", "ce00000001", "cf0000000000000001", "d001", "d10001",
                                     "d200000001", "d30000000000000001", "ca3f800000", "cb3ff0000000000000"}) {
    CAPTURE(one);
    CHECK(canonical_hex(hex(one)) == "01");
  }
  for (const std::string_view minus_one : {"ff", "d0ff", "d1ffff", "d2ffffffff", "d3ffffffffffffffff", "cabf800000"}) {
    CAPTURE(minus_one);
    CHECK(canonical_hex(hex(minus_one)) == "ff");
  }
}

TEST_CASE("integers at the borders of the forms") {
  CHECK(canonical_hex(hex("cf000000000000007f")) == "7f");
  CHECK(canonical_hex(hex("cf0000000000000080")) == "cc80");
  CHECK(canonical_hex(hex("cf0000000000000100")) == "cd0100");
  CHECK(canonical_hex(hex("cf0000000000010000")) == "ce00010000");
  CHECK(canonical_hex(hex("cf0000000100000000")) == "cf0000000100000000");
  CHECK(canonical_hex(hex("cfffffffffffffffff")) == "cfffffffffffffffff");
  CHECK(canonical_hex(hex("d3ffffffffffffffe0")) == "e0");
  CHECK(canonical_hex(hex("d3ffffffffffffffdf")) == "d0df");
  CHECK(canonical_hex(hex("d3ffffffffffffff7f")) == "d1ff7f");
  CHECK(canonical_hex(hex("d3ffffffffffff7fff")) == "d2ffff7fff");
  CHECK(canonical_hex(hex("d3ffffffff7fffffff")) == "d3ffffffff7fffffff");
  CHECK(canonical_hex(hex("d38000000000000000")) == "d38000000000000000");
}

TEST_CASE("an integral float within 2^53 is the integer") {
  CHECK(canonical_hex(floating(9007199254740992.0)) == "cf0020000000000000");
  CHECK(canonical_hex(floating(-9007199254740992.0)) == "d3ffe0000000000000");
  CHECK(canonical_hex(floating(3.0)) == "03");
  CHECK(canonical_hex(floating(0.0)) == "00");
  CHECK(canonical_hex(floating(-0.0)) == "00");
  CHECK(canonical_hex(hex("ca80000000")) == "00");
}

TEST_CASE("a float beyond 2^53 or with a fraction stays a float of 64 bits") {
  CHECK(canonical_hex(floating(9007199254740994.0)) == "cb4340000000000001");
  CHECK(canonical_hex(floating(-9007199254740994.0)) == "cbc340000000000001");
  CHECK(canonical_hex(floating(0.5)) == "cb3fe0000000000000");
  CHECK(canonical_hex(hex("ca3f000000")) == "cb3fe0000000000000");
  CHECK(canonical_hex(hex("ca3dcccccd")) == "cb3fb99999a0000000");
  CHECK(canonical_hex(floating(5e-324)) == "cb0000000000000001");
}

TEST_CASE("2^53 + 1 as an integer is not rounded") {
  CHECK(canonical_hex(hex("cf0020000000000001")) == "cf0020000000000001");
}

TEST_CASE("NaN and the infinities have no canonical form") {
  CHECK(canonical_hex(floating(std::nan(""))) == "not_finite");
  CHECK(canonical_hex(floating(std::numeric_limits<double>::infinity())) == "not_finite");
  CHECK(canonical_hex(hex("caff800000")) == "not_finite");
}

TEST_CASE("nil and booleans are kept") {
  CHECK(canonical_hex(hex("93c0c2c3")) == "93c0c2c3");
}

TEST_CASE("strings and binaries take their shortest heads and stay apart") {
  CHECK(canonical_hex(hex("db0000000161")) == "a161");
  CHECK(canonical_hex(hex("c60000000161")) == "c40161");
  CHECK(canonical_hex(hex("d900")) == "a0");
  CHECK(canonical_hex(hex("c50000")) == "c400");
  const std::vector<std::pair<std::size_t, std::string>> heads{
      {31, "bf"}, {32, "d920"}, {255, "d9ff"}, {256, "da0100"}, {65535, "daffff"}, {65536, "db00010000"}};
  for (const auto &expected : heads) {
    CAPTURE(expected.first);
    const Bytes form = text(Bytes(expected.first, 'x'));
    CHECK(canonical_hex(form) == to_hex(form));
    CHECK(to_hex(form).starts_with(expected.second));
  }
}

TEST_CASE("strings are not normalised") {
  CHECK(canonical_hex(text("\xC3\xA9")) == to_hex(text("\xC3\xA9")));
  CHECK(canonical_hex(text("e\xCC\x81")) == to_hex(text("e\xCC\x81")));
}

TEST_CASE("arrays keep their order and maps are sorted by the bytes of their names") {
  CHECK(canonical_hex(hex("dd00000002c20301").substr(0, 7)) == "92c203");
  // {"b": 1, "aa": 2, "": 3, "B": 4} becomes "", "B", "aa", "b".
  CHECK(canonical_hex(hex("84a16201a2616102a003a14204")) == "84a003a14204a2616102a16201");
  // A name of 40 bytes, with another head, sorts by its bytes too.
  const Bytes name(40, 'a');
  CHECK(canonical_hex(map_of({{"b", integer(1)}, {name, integer(2)}})) ==
        to_hex(map_of({{name, integer(2)}, {"b", integer(1)}})));
}

TEST_CASE("names above ASCII sort as unsigned bytes") {
  CHECK(canonical_hex(map_of({{"\xC3\xA9", integer(1)}, {"z", integer(2)}})) ==
        to_hex(map_of({{"z", integer(2)}, {"\xC3\xA9", integer(1)}})));
}

TEST_CASE("maps inside maps and arrays are sorted too") {
  const Bytes inner = map_of({{"q", integer(1)}, {"p", integer(2)}});
  const Bytes sorted = map_of({{"p", integer(2)}, {"q", integer(1)}});
  CHECK(canonical_hex(map_of({{"y", inner}, {"x", '\x92' + inner + inner}})) ==
        to_hex(map_of({{"x", '\x92' + sorted + sorted}, {"y", sorted}})));
}

TEST_CASE("a large unsorted map with a long head is put in order") {
  Bytes falling;
  Bytes rising;
  messagepack::Writer down(falling);
  messagepack::Writer up(rising);
  down.map(70'000);
  up.map(70'000);
  for (std::int64_t at = 0; at < 70'000; ++at) {
    up.string(std::to_string(100'000 + at)).integer(at);
    down.string(std::to_string(169'999 - at)).integer(69'999 - at);
  }
  JobParser parser;
  const auto form = parser.canonical(falling);
  REQUIRE(form.has_value());
  CHECK(*form == rising);
}

TEST_CASE("a value of any kind has a canonical form and jobs' rules for ids do not apply") {
  CHECK(canonical_hex(hex("80")) == "80");
  CHECK(canonical_hex(map_of({{"operation_id", integer(1)}})) == to_hex(map_of({{"operation_id", integer(1)}})));
}

TEST_CASE("values without a canonical form are refused by name") {
  CHECK(canonical_hex("") == "malformed");
  CHECK(canonical_hex(hex("c1")) == "malformed");
  CHECK(canonical_hex(hex("92c0")) == "malformed");
  CHECK(canonical_hex(hex("c0c0")) == "trailing_bytes");
  CHECK(canonical_hex(hex("d40100")) == "extension_type");
  CHECK(canonical_hex(hex("a1ff")) == "invalid_utf8");
  CHECK(canonical_hex(hex("8101c0")) == "name_not_a_string");
  CHECK(canonical_hex(hex("82a16101a16101")) == "duplicate_name");
  CHECK(canonical_hex(nested_arrays(16)) == to_hex(nested_arrays(16)));
  CHECK(canonical_hex(nested_arrays(17)) == "too_deep");
}

TEST_CASE("a parser that has met a defect reads the next value well") {
  JobParser parser;
  CHECK_FALSE(parser.canonical(hex("83a16101a16101")).has_value());
  CHECK_FALSE(parser.canonical(hex("82a16101a16101")).has_value());
  const auto form = parser.canonical(hex("82a16201a16101"));
  REQUIRE(form.has_value());
  CHECK(to_hex(*form) == "82a16101a16201");
}

namespace {

// Two spellings of one random value: widths, heads and the order of names differ.
class Spellings {
public:
  explicit Spellings(std::uint64_t seed) : random_(seed) {}

  std::pair<Bytes, Bytes> value(unsigned depth) {
    switch (random_.next() % (depth < 4 ? 7 : 5)) {
    case 0:
      return {hex("c0"), hex("c0")};
    case 1:
      return number();
    case 2:
      return fraction();
    case 3:
      return string("s" + std::to_string(random_.next() % 1000));
    case 4:
      return {hex("c40161"), hex("c50001") + "a"};
    case 5:
      return array(depth);
    default:
      return map(depth);
    }
  }

private:
  std::pair<Bytes, Bytes> number() {
    const auto value = static_cast<std::int64_t>(random_.next()) >> (random_.next() % 64);
    Bytes wide = "\xD3";
    for (unsigned shift = 64; shift > 0; shift -= 8) {
      wide += static_cast<char>(value >> (shift - 8) & 0xFF);
    }
    const bool exact = std::llabs(value) <= (std::int64_t{1} << 53U);
    return {integer(value), exact && random_.next() % 2 == 0 ? floating(static_cast<double>(value)) : wide};
  }
  std::pair<Bytes, Bytes> fraction() {
    const Bytes value = floating(static_cast<double>(random_.next() % 1000) + 0.5);
    return {value, value};
  }
  static std::pair<Bytes, Bytes> string(const std::string &value) {
    return {text(value), Bytes("\xDB\x00\x00\x00", 4) + static_cast<char>(value.size()) + value};
  }
  std::pair<Bytes, Bytes> array(unsigned depth) {
    const std::size_t size = random_.next() % 5;
    std::pair<Bytes, Bytes> both{Bytes(1, static_cast<char>(0x90 + size)),
                                 Bytes("\xDD\x00\x00\x00", 4) + static_cast<char>(size)};
    for (std::size_t at = 0; at < size; ++at) {
      const auto [left, right] = value(depth + 1);
      both.first += left;
      both.second += right;
    }
    return both;
  }
  std::pair<Bytes, Bytes> map(unsigned depth) {
    const std::size_t size = random_.next() % 8;
    std::vector<std::pair<Bytes, Bytes>> entries;
    for (std::size_t at = 0; at < size; ++at) {
      const auto name = string(std::to_string(random_.next() % 1000) + "/" + std::to_string(at));
      const auto [left, right] = value(depth + 1);
      entries.emplace_back(name.first + left, name.second + right);
    }
    std::pair<Bytes, Bytes> both{Bytes(1, static_cast<char>(0x80 + size)),
                                 Bytes("\xDE\x00", 2) + static_cast<char>(size)};
    for (const auto &entry : entries) {
      both.first += entry.first;
    }
    for (std::size_t left = size; left > 1; --left) {
      std::swap(entries[left - 1], entries[random_.next() % left]);
    }
    for (const auto &entry : entries) {
      both.second += entry.second;
    }
    return both;
  }

  SeededRandom random_;
};

} // namespace

TEST_CASE("spellings of one value have one canonical form and it is its own") {
  JobParser parser;
  for (const Seed seed : seeds(3000)) {
    CAPTURE(seed);
    const auto [left, right] = Spellings(seed.number).value(0);
    const Bytes form(parser.canonical(left).value_or("left refused"));
    REQUIRE(form != "left refused");
    REQUIRE(parser.canonical(right).value_or("right refused") == form);
    REQUIRE(parser.canonical(form).value_or("form refused") == form);
  }
}

TEST_CASE("random and mutated bytes are read or refused and leave the parser usable") {
  const Seed seed = seed_or(7);
  CAPTURE(seed);
  SeededRandom random(seed.number);
  JobParser parser;
  Job job;
  for (int round = 0; round < 20'000; ++round) {
    CAPTURE(round);
    Bytes bytes = job_with(Spellings(random.next()).value(0).second);
    for (std::uint64_t change = random.next() % 4; change > 0; --change) {
      bytes[random.next() % bytes.size()] = static_cast<char>(random.next());
    }
    bytes.resize(bytes.size() - random.next() % 2);
    // A copy of exactly this length, so that a sanitizer sees any read beyond it.
    const std::unique_ptr<char[]> exact(new char[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), exact.get());
    if (!parser.parse({exact.get(), bytes.size()}, job)) continue;
    CHECK(parser.canonical(job.payload).value_or("payload refused") == job.payload);
  }
}
