#include "base/messagepack.hpp"

#include <string>
#include <vector>

#include "unit/job/support.hpp"

using namespace onced;
using namespace onced::messagepack;
using namespace onced::testing;

namespace {

constexpr std::size_t many = 1000;

std::vector<Token> tokens_of(const Bytes &bytes) {
  std::vector<Token> tokens;
  REQUIRE(tokenize(bytes, tokens, many));
  return tokens;
}

bool readable(const Bytes &bytes, std::size_t tokens_max = many) {
  std::vector<Token> tokens;
  return tokenize(bytes, tokens, tokens_max);
}

} // namespace

TEST_CASE("every kind of value becomes a token") {
  const Bytes bytes = hex("9ac0c37bf0"
                          "cb3fe0000000000000"
                          "a161"
                          "c40162"
                          "90"
                          "80"
                          "d40763");
  const std::vector<Token> tokens = tokens_of(bytes);
  REQUIRE(tokens.size() == 11);
  CHECK(tokens[0].kind == Kind::array);
  CHECK(tokens[0].number == 10);
  CHECK(tokens[1].kind == Kind::nil);
  CHECK(tokens[2].kind == Kind::boolean);
  CHECK(tokens[2].number == 1);
  CHECK(tokens[3].kind == Kind::positive);
  CHECK(tokens[3].number == 123);
  CHECK(tokens[4].kind == Kind::negative);
  CHECK(static_cast<std::int64_t>(tokens[4].number) == -16);
  CHECK(tokens[5].kind == Kind::floating);
  CHECK(tokens[5].floating == 0.5);
  CHECK(tokens[6].kind == Kind::string);
  CHECK(tokens[6].bytes == "a");
  CHECK(tokens[7].kind == Kind::binary);
  CHECK(tokens[7].bytes == "b");
  CHECK(tokens[8].kind == Kind::array);
  CHECK(tokens[8].number == 0);
  CHECK(tokens[9].kind == Kind::map);
  CHECK(tokens[10].kind == Kind::extension);
}

TEST_CASE("a number of 0 or more in a signed form is positive") {
  for (const std::string_view five : {"05", "d005", "d10005", "d200000005", "d30000000000000005", "cc05"}) {
    CAPTURE(five);
    const std::vector<Token> tokens = tokens_of(hex(five));
    TokenReader reader(tokens);
    CHECK(reader.positive() == 5);
    CHECK(reader.at_end());
  }
}

TEST_CASE("bytes that are not exactly one value are refused") {
  CHECK_FALSE(readable(""));
  CHECK_FALSE(readable(hex("c1")));
  CHECK_FALSE(readable(hex("9201")));
  CHECK_FALSE(readable(hex("0101")));
  CHECK_FALSE(readable(hex("a2") + "x"));
}

TEST_CASE("a head that claims four billion elements is refused at no cost") {
  std::vector<Token> tokens;
  for (const std::string_view bomb : {"ddffffffff", "dfffffffff", "dbffffffff", "c6ffffffff", "c9ffffffff"}) {
    CAPTURE(bomb);
    CHECK_FALSE(tokenize(hex(bomb), tokens, many));
  }
  CHECK(tokens.capacity() < 16);
}

TEST_CASE("nesting ends at 16") {
  CHECK(readable(nested_arrays(16)));
  CHECK_FALSE(readable(nested_arrays(17)));
  CHECK_FALSE(readable(Bytes(16, '\x91') + '\x80'));
  CHECK(readable('\x92' + nested_arrays(15) + nested_arrays(15)));
}

TEST_CASE("tokens beyond their limit are refused") {
  CHECK(readable(hex("93010203"), 4));
  CHECK_FALSE(readable(hex("93010203"), 3));
}

TEST_CASE("a reader takes what the grammar asks for") {
  Bytes bytes;
  Writer(bytes).array(5).positive(7).binary("xy").nil().string("s").map(1).string("k").nil();
  const std::vector<Token> tokens = tokens_of(bytes);
  TokenReader reader(tokens);
  CHECK(reader.array(5));
  CHECK(reader.positive() == 7);
  CHECK(reader.binary_or_nil() == BytesView("xy"));
  CHECK(reader.binary_or_nil() == std::nullopt);
  CHECK(reader.string_or_nil() == BytesView("s"));
  CHECK_FALSE(reader.at_end());
  CHECK(reader.map() == 1);
  CHECK(reader.string() == "k");
  CHECK(reader.string_or_nil() == std::nullopt);
  CHECK(reader.at_end());
  CHECK(reader.peek() == nullptr);
}

TEST_CASE("a reader that met another kind fails for good") {
  const std::vector<Token> tokens = tokens_of(hex("920102"));
  TokenReader reader(tokens);
  CHECK(reader.array() == 2);
  CHECK(reader.string().empty());
  CHECK_FALSE(reader.ok());
  CHECK(reader.positive() == 0);
  CHECK(reader.peek() == nullptr);
  CHECK_FALSE(reader.at_end());
}

TEST_CASE("a reader fails at the end and where a condition is not met") {
  const std::vector<Token> tokens = tokens_of(hex("05"));
  TokenReader beyond(tokens);
  CHECK(beyond.positive() == 5);
  CHECK(beyond.positive() == 0);
  CHECK_FALSE(beyond.ok());
  TokenReader other_size(tokens);
  CHECK_FALSE(other_size.require(false));
  CHECK_FALSE(other_size.ok());
  const std::vector<Token> pair = tokens_of(hex("920102"));
  TokenReader wrong_size(pair);
  CHECK_FALSE(wrong_size.array(3));
}

TEST_CASE("skip takes one value with everything inside it") {
  const std::vector<Token> tokens = tokens_of(hex("93"
                                                  "82a161920102a16280"
                                                  "90"
                                                  "05"));
  TokenReader reader(tokens);
  CHECK_FALSE(reader.array(2));
  TokenReader whole(tokens);
  whole.skip();
  CHECK(whole.at_end());
}

TEST_CASE("skip stops before the next value") {
  const std::vector<Token> tokens = tokens_of(hex("93"
                                                  "82a161920102a16280"
                                                  "90"
                                                  "05"));
  TokenReader reader(tokens);
  CHECK(reader.array(3));
  reader.skip();
  reader.skip();
  CHECK(reader.positive() == 5);
  CHECK(reader.at_end());
  reader.skip();
  CHECK_FALSE(reader.ok());
}

TEST_CASE("the writer takes the shortest form of each value") {
  Bytes bytes;
  Writer(bytes).positive(127).positive(128).integer(-32).integer(-33).integer(5).boolean(true).nil();
  CHECK(to_hex(bytes) == "7f"
                         "cc80"
                         "e0"
                         "d0df"
                         "05"
                         "c3"
                         "c0");
  bytes.clear();
  Writer(bytes).array(15).array(16).map(15).map(16).floating(1.0).raw("x");
  CHECK(to_hex(bytes) == "9f"
                         "dc0010"
                         "8f"
                         "de0010"
                         "cb3ff0000000000000"
                         "78");
  bytes.clear();
  Writer(bytes).string("").string(Bytes(32, 's')).binary("");
  CHECK(to_hex(bytes).starts_with("a0"
                                  "d920"));
  CHECK(to_hex(bytes).ends_with("c400"));
}
