#include "base/json_reader.hpp"

#include <limits>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/json_value.hpp"
#include "onced/ids.hpp"
#include "onced/job.hpp"
#include "onced/limits.hpp"

using namespace onced;

namespace {

std::string hex_of(std::string_view json) {
  Bytes out;
  const auto done = messagepack_of_json(json, out);
  return done ? to_hex(out) : "refused: " + done.error();
}

std::string repeated(const std::string &text, std::size_t times) {
  std::string all;
  for (std::size_t at = 0; at < times; ++at) {
    all += text;
  }
  return all;
}

} // namespace

TEST_CASE("a JSON value becomes the same MessagePack value") {
  CHECK(hex_of("null") == "c0");
  CHECK(hex_of("[true,false]") == "92c3c2");
  CHECK(hex_of(R"({"a":[1,-1,"b"],"c":{}})") == "82a1619301ffa162a16380");
  CHECK(hex_of("[1.5]") == "91cb3ff8000000000000");
  CHECK(hex_of(R"("\u00e9\u0000")") == "a3c3a900");
}

TEST_CASE("integers are exact to the ends of 64 bits") {
  CHECK(hex_of("18446744073709551615") == "cfffffffffffffffff");
  CHECK(hex_of("-9223372036854775808") == "d38000000000000000");
  CHECK(hex_of("9007199254740993") == "cf0020000000000001");
}

TEST_CASE("an integer beyond 64 bits is refused and never rounded") {
  for (const char *json : {"18446744073709551616", "-9223372036854775809", "[1,100000000000000000000000000]"}) {
    CAPTURE(json);
    CHECK(hex_of(json) == "refused: number beyond 64 bits");
  }
}

TEST_CASE("a float too large for a double is refused") {
  CHECK(hex_of("[1e999]") == "refused: number beyond the range of a double");
  CHECK(hex_of("[1e308]") == "91cb7fe1ccf385ebc8a0");
}

TEST_CASE("zero keeps the form in which it was written") {
  CHECK(hex_of("-0") == "00");
  CHECK(hex_of("-0.0") == "cb8000000000000000");
  CHECK(hex_of("0e0") == "cb0000000000000000");
}

TEST_CASE("containers of every size have the shortest head") {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 65'535U, 65'536U}) {
    CAPTURE(size);
    nlohmann::json array = nlohmann::json::array();
    nlohmann::json map = nlohmann::json::object();
    for (std::size_t at = 0; at < size; ++at) {
      array.push_back(at);
      map[std::to_string(at)] = {at};
    }
    const nlohmann::json both{{"array", array}, {"map", map}};
    const auto expected = nlohmann::json::to_msgpack(both);
    CHECK(hex_of(both.dump()) == to_hex(Bytes(expected.begin(), expected.end())));
  }
}

TEST_CASE("nesting is refused where the limit is passed") {
  const auto nested = [](std::size_t depth) { return repeated("[", depth) + repeated("]", depth); };
  CHECK(hex_of(nested(limits::nesting_max)) == repeated("91", limits::nesting_max - 1) + "90");
  CHECK(hex_of(nested(limits::nesting_max + 1)) == "refused: too_deep");
  // Never closed, and long: refused at the seventeenth bracket, not at the end.
  CHECK(hex_of(repeated("[", 1'000'000)) == "refused: too_deep");
  CHECK(hex_of(repeated("{\"a\":", 1'000'000)) == "refused: too_deep");
}

TEST_CASE("duplicate names pass here and are refused by the parser of jobs") {
  Bytes out;
  REQUIRE(messagepack_of_json(R"({"operation_id":"a","operation_id":"a"})", out).has_value());
  JobParser parser;
  Job job;
  const auto parsed = parser.parse(out, job);
  REQUIRE_FALSE(parsed.has_value());
  CHECK(parsed.error() == JobDefect::duplicate_name);
}

TEST_CASE("what is not JSON is refused with its place and without its bytes") {
  CHECK(hex_of("not-json") == "refused: not JSON at byte 2");
  CHECK(hex_of("{} x") == "refused: not JSON at byte 4");
  CHECK(hex_of("") == "refused: not JSON at byte 1");
  for (const char *json : {"NaN", "[1,]", "{'a':1}", "[01]", "// comment\n1", "\"\xff\"", "\"\\ud800\"", "[1"}) {
    CAPTURE(json);
    CHECK(hex_of(json).rfind("refused: not JSON at byte ", 0) == 0);
  }
}

TEST_CASE("a result in MessagePack is shown as the same JSON value") {
  const auto shown = [](std::string_view hex) {
    const auto value = json_of_messagepack(*from_hex(hex), Binaries::refused);
    return value ? dump(*value) : "none";
  };
  CHECK(shown("06") == "6");
  CHECK(shown("cfffffffffffffffff") == "18446744073709551615");
  CHECK(shown("d38000000000000000") == "-9223372036854775808");
  CHECK(shown("cb3ff8000000000000") == "1.5");
  CHECK(shown("82a162c0a16192c2a0") == R"({"b":null,"a":[false,""]})");
}

TEST_CASE("MessagePack that JSON cannot say has no value") {
  const auto has_value = [](const std::string &hex) {
    return json_of_messagepack(*from_hex(hex), Binaries::refused).has_value();
  };
  CHECK_FALSE(has_value(""));
  CHECK_FALSE(has_value("0101"));
  CHECK_FALSE(has_value("dfffffffff"));                   // a map of four billion that is not there
  CHECK_FALSE(has_value("82a16101a16102"));               // a name twice
  CHECK_FALSE(has_value("810101"));                       // a name that is no string
  CHECK_FALSE(has_value("a1ff"));                         // no UTF-8
  CHECK_FALSE(has_value("81a1ff01"));                     // no UTF-8 in a name
  CHECK_FALSE(has_value("cb7ff8000000000000"));           // NaN
  CHECK_FALSE(has_value("c40100"));                       // a binary
  CHECK_FALSE(has_value("d40100"));                       // an ext type
  CHECK_FALSE(has_value(repeated("91", 100'000) + "00")); // would exhaust the stack
}
