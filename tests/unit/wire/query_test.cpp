// answer_query on a real store: every query, and every way to ask wrongly.
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "job/messagepack.hpp"
#include "onced/limits.hpp"
#include "support/store_harness.hpp"
#include "wire/query.hpp"

namespace onced::testing {
namespace {

using messagepack::Kind;
using messagepack::Token;
using messagepack::TokenReader;
using messagepack::Writer;

// One map of an answer: scalars as text, as a test wants to compare them. Nil is "nil", inner maps and arrays "...".
using Fields = std::map<std::string, std::string>;

std::string text_of(TokenReader &reader) {
  const Token token = *reader.peek();
  reader.skip();
  switch (token.kind) {
  case Kind::nil:
    return "nil";
  case Kind::boolean:
    return token.number != 0 ? "true" : "false";
  case Kind::positive:
    return std::to_string(token.number);
  case Kind::string:
    return std::string(token.bytes);
  case Kind::binary:
    return "bin " + to_hex(token.bytes);
  default:
    return "...";
  }
}

Fields read_map(TokenReader &reader) {
  Fields fields;
  for (std::uint64_t left = reader.map(); left > 0 && reader.ok(); --left) {
    const std::string name(reader.string());
    REQUIRE(reader.peek() != nullptr);
    CHECK(fields.emplace(name, text_of(reader)).second);
  }
  REQUIRE(reader.ok());
  return fields;
}

std::vector<Token> tokens_of(BytesView answer) {
  std::vector<Token> tokens;
  REQUIRE(messagepack::tokenize(answer, tokens, 10'000));
  return tokens;
}

Fields fields_of(BytesView answer) {
  const auto tokens = tokens_of(answer);
  TokenReader reader(tokens);
  Fields fields = read_map(reader);
  CHECK(reader.at_end());
  return fields;
}

// The error of an answer that has nothing else.
Fields error_of(BytesView answer) {
  const auto tokens = tokens_of(answer);
  TokenReader reader(tokens);
  REQUIRE(reader.map() == 1);
  REQUIRE(reader.string() == "error");
  Fields error = read_map(reader);
  CHECK(reader.at_end());
  CHECK(error.size() == 4);
  CHECK_FALSE(error["cause"].empty());
  CHECK_FALSE(error["remedy"].empty());
  return error;
}

std::vector<Fields> rows_of(BytesView answer) {
  const auto tokens = tokens_of(answer);
  TokenReader reader(tokens);
  REQUIRE(reader.map() == 1);
  REQUIRE(reader.string() == "rows");
  std::vector<Fields> rows;
  for (std::uint64_t left = reader.array(); left > 0 && reader.ok(); --left)
    rows.push_back(read_map(reader));
  CHECK(reader.at_end());
  return rows;
}

Bytes request(const std::vector<std::pair<std::string, std::string>> &texts) {
  Bytes out;
  Writer writer(out);
  writer.map(texts.size());
  for (const auto &[name, value] : texts)
    writer.string(name).string(value);
  return out;
}

struct Harness : StoreHarness {
  Harness() { open(); }
  Bytes ask(const std::vector<std::pair<std::string, std::string>> &texts) {
    return wire::answer_query(*store, request(texts));
  }
};

TEST_CASE("get answers with everything that the row holds") {
  Harness harness;
  REQUIRE(harness.commit_one(job_bytes("demo-1", {1, 2, 3})).outcome == Outcome::stored);
  const Fields row = fields_of(harness.ask({{"query", "get"}, {"operation_id", "demo-1"}}));
  CHECK(row == Fields{{"found", "true"},
                      {"operation_id", "demo-1"},
                      {"type", "sum"},
                      {"effect_key", "nil"},
                      {"phase", "committed"},
                      {"result", "6"},
                      {"digest", "b2f97885761ac287fdf358923c6f3c3398630f2f3ffa7ecaa71ac072d54838de"},
                      {"issued_at_us", "1699999999000000"},
                      {"committed_at_us", "1700000000000000"},
                      {"worker_build", row.at("worker_build")},
                      {"durability", "fsync"}});
  CHECK_FALSE(row.at("worker_build").empty());
}

TEST_CASE("get finds a row by its type and by its effect key") {
  Harness harness;
  REQUIRE(harness.commit_one(job_bytes({"demo-1", {5}, {}, "invoice-7"})).outcome == Outcome::stored);
  const Fields row = fields_of(harness.ask({{"query", "get"}, {"effect_key", "invoice-7"}}));
  CHECK(row.at("effect_key") == "invoice-7");
  CHECK(row.at("operation_id") == "demo-1");
  CHECK(fields_of(harness.ask({{"query", "get"}, {"operation_id", "demo-1"}, {"type", "sum"}})) ==
        Fields{{"found", "false"}}); // a job with an effect key claims that and nothing else
}

TEST_CASE("get says when there is no row") {
  Harness harness;
  CHECK(fields_of(harness.ask({{"query", "get"}, {"operation_id", "nothing"}})) == Fields{{"found", "false"}});
  REQUIRE(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::stored);
  CHECK(fields_of(harness.ask({{"query", "get"}, {"operation_id", "demo-1"}, {"type", "other"}})) ==
        Fields{{"found", "false"}});
}

TEST_CASE("get with ids that no job can have is a usage error") {
  Harness harness;
  const std::string long_id(256, 'x');
  const std::string long_type(65, 't');
  CHECK(error_of(harness.ask({{"query", "get"}}))["code"] == "usage");
  CHECK(error_of(harness.ask({{"query", "get"}, {"operation_id", ""}}))["code"] == "usage");
  CHECK(error_of(harness.ask({{"query", "get"}, {"operation_id", long_id}}))["code"] == "usage");
  CHECK(error_of(harness.ask({{"query", "get"}, {"effect_key", long_id}}))["code"] == "usage");
  CHECK(error_of(harness.ask({{"query", "get"}, {"operation_id", "a"}, {"type", ""}}))["code"] == "usage");
  CHECK(error_of(harness.ask({{"query", "get"}, {"operation_id", "a"}, {"type", long_type}}))["code"] == "usage");
  CHECK(fields_of(harness.ask({{"query", "get"}, {"operation_id", std::string(255, 'x')}})) ==
        Fields{{"found", "false"}});
}

TEST_CASE("count counts results and dead letters") {
  Harness harness;
  const auto counts = [&] { return fields_of(harness.ask({{"query", "count"}})); };
  CHECK(counts() == Fields{{"results", "0"}, {"dead_letters", "0"}, {"pending", "0"}});
  static_cast<void>(harness.commit({job_bytes("a", {1}), job_bytes("b", {2}), job_bytes("a", {9}), "not-json"}));
  CHECK(counts() == Fields{{"results", "2"}, {"dead_letters", "2"}, {"pending", "0"}});
}

TEST_CASE("a list of dead letters is read page by page without a gap") {
  Harness harness;
  constexpr std::size_t letters = limits::rows_per_answer_max + 7;
  std::vector<Bytes> bad;
  for (std::size_t at = 0; at < letters; ++at)
    bad.push_back("not-json " + std::to_string(at));
  static_cast<void>(harness.commit(bad));

  const auto first = rows_of(harness.ask({{"query", "dead-letters list"}}));
  REQUIRE(first.size() == limits::rows_per_answer_max);
  const auto second = rows_of(harness.ask({{"query", "dead-letters list"}, {"after", first.back().at("id")}}));
  REQUIRE(second.size() == 7);
  CHECK(first.back().at("id") < second.front().at("id"));
  CHECK(rows_of(harness.ask({{"query", "dead-letters list"}, {"after", second.back().at("id")}})).empty());
  const Fields &row = first.front();
  CHECK(row == Fields{{"id", row.at("id")},
                      {"reason", "invalid"},
                      {"detail", "not_a_map"},
                      {"operation_id", "nil"},
                      {"type", "nil"},
                      {"effect_key", "nil"},
                      {"deliveries", "1"},
                      {"first_at_us", "1700000000000000"},
                      {"last_at_us", "1700000000000000"}});
}

TEST_CASE("a list of dead letters gives no more rows than were asked for and none beyond the limit") {
  Harness harness;
  std::vector<Bytes> bad;
  for (std::size_t at = 0; at < limits::rows_per_answer_max + 1; ++at)
    bad.push_back("x" + std::to_string(at));
  static_cast<void>(harness.commit(bad));
  const auto rows = [&](std::uint64_t wanted) {
    Bytes asked;
    Writer(asked).map(2).string("query").string("dead-letters list").string("rows").positive(wanted);
    return rows_of(wire::answer_query(*harness.store, asked)).size();
  };
  CHECK(rows(0) == 0);
  CHECK(rows(3) == 3);
  CHECK(rows(UINT64_MAX) == limits::rows_per_answer_max);
}

TEST_CASE("show gives a dead letter with its bytes and both digests") {
  Harness harness;
  const Bytes conflicting = job_bytes("demo-1", {9});
  static_cast<void>(harness.commit({job_bytes("demo-1", {1, 2, 3}), conflicting}));
  const auto listed = rows_of(harness.ask({{"query", "dead-letters list"}}));
  REQUIRE(listed.size() == 1);
  const Fields shown = fields_of(harness.ask({{"query", "dead-letters show"}, {"id", listed[0].at("id")}}));
  Fields expected = listed[0];
  expected.merge(Fields{{"found", "true"},
                        {"bytes", "bin " + to_hex(conflicting)},
                        {"sender", "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"},
                        {"sequence", "2"},
                        {"issued_at_us", "1699999999000000"},
                        {"receives", "0"},
                        {"redrives", "0"},
                        {"stored_digest", "b2f97885761ac287fdf358923c6f3c3398630f2f3ffa7ecaa71ac072d54838de"},
                        {"offered_digest", "5304ec358dda7188665c64362779dbbb626137c3dfd052c8a26e3f5a9721f7d8"}});
  CHECK(shown == expected);
  CHECK(shown.at("reason") == "conflict");
}

TEST_CASE("show says when there is no such dead letter and when the id is none") {
  Harness harness;
  CHECK(fields_of(harness.ask({{"query", "dead-letters show"}, {"id", std::string(32, 'a')}})) ==
        Fields{{"found", "false"}});
  CHECK(error_of(harness.ask({{"query", "dead-letters show"}}))["code"] == "usage");
  CHECK(error_of(harness.ask({{"query", "dead-letters show"}, {"id", "abc"}}))["code"] == "usage");
  CHECK(error_of(harness.ask({{"query", "dead-letters show"}, {"id", std::string(34, 'a')}}))["code"] == "usage");
  CHECK(error_of(harness.ask({{"query", "dead-letters list"}, {"after", "xyz"}}))["code"] == "usage");
}

TEST_CASE("a request that is no query is answered with an error that says so") {
  Harness harness;
  CHECK(error_of(harness.ask({{"query", "drop"}}))["concerns"] == "drop");
  CHECK(error_of(harness.ask({{"name", "count"}}))["code"] == "usage");
  Bytes number_for_text;
  Writer(number_for_text).map(1).string("query").positive(1);
  Bytes text_for_number;
  Writer(text_for_number).map(2).string("query").string("count").string("rows").string("3");
  const std::vector<Bytes> requests{"",
                                    "not-json",
                                    "\x90",
                                    "\xDF\xFF\xFF\xFF\xFF",
                                    number_for_text,
                                    text_for_number,
                                    "\x80",
                                    request({{"query", "count"}}) + "x"};
  for (const Bytes &bytes : requests) {
    CAPTURE(to_hex(bytes));
    CHECK(error_of(wire::answer_query(*harness.store, bytes))["code"] == "usage");
  }
}

TEST_CASE("a request cut short at any byte is answered with an error") {
  Harness harness;
  const Bytes whole = request({{"query", "get"}, {"operation_id", "demo-1"}, {"type", "sum"}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(error_of(wire::answer_query(*harness.store, whole.substr(0, size)))["code"] == "usage");
}

} // namespace
} // namespace onced::testing
