// answer_query and answer_change on a real store: every query and every way to ask wrongly, and the resolution of a
// held job. Not here: what redrives and purges do (the store's tests), who may ask what (real processes).
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/messagepack.hpp"
#include "onced/limits.hpp"
#include "support/queue_harness.hpp"
#include "support/raw_database.hpp"
#include "wire/messages.hpp"
#include "wire/query.hpp"

namespace onced::testing {
namespace {

using messagepack::Kind;
using messagepack::Token;
using messagepack::TokenReader;
using messagepack::Writer;

// One map of an answer: scalars as text, as a test wants to compare them. Nil is "nil", an array "[a, b]", an inner map
// "...".
using Fields = std::map<std::string, std::string>;

std::string text_of(TokenReader &reader);

std::string text_of_array(TokenReader &reader) {
  std::string text = "[";
  for (std::uint64_t left = reader.array(); left > 0 && reader.ok(); --left)
    text.append(text_of(reader)).append(left > 1 ? ", " : "");
  return text + "]";
}

std::string text_of(TokenReader &reader) {
  const Token token = *reader.peek();
  if (token.kind == Kind::array) return text_of_array(reader);
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

// An answer of "pending list".
struct QueuePage {
  std::vector<Fields> rows;
  std::string next;
  std::string damaged;
};

QueuePage queue_page_of(BytesView answer) {
  const auto tokens = tokens_of(answer);
  TokenReader reader(tokens);
  QueuePage page;
  REQUIRE(reader.map() == 3);
  REQUIRE(reader.string() == "rows");
  for (std::uint64_t left = reader.array(); left > 0 && reader.ok(); --left)
    page.rows.push_back(read_map(reader));
  REQUIRE(reader.string() == "next");
  page.next = text_of(reader);
  REQUIRE(reader.string() == "damaged");
  page.damaged = text_of(reader);
  CHECK(reader.at_end());
  return page;
}

std::string joined(const std::vector<Fields> &rows, const std::string &field) {
  std::string text;
  for (const Fields &row : rows)
    text.append(text.empty() ? "" : " ").append(row.at(field));
  return text;
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
    return wire::answer_query(*store, request(texts), wire::Asker::network);
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
  CHECK(counts() == Fields{{"results", "0"}, {"dead_letters", "0"}, {"pending", "0"}, {"relayed", "0"}});
  static_cast<void>(harness.commit({job_bytes("a", {1}), job_bytes("b", {2}), job_bytes("a", {9}), "not-json"}));
  CHECK(counts() == Fields{{"results", "2"}, {"dead_letters", "2"}, {"pending", "0"}, {"relayed", "0"}});
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
    return rows_of(wire::answer_query(*harness.store, asked, wire::Asker::network)).size();
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
                        {"sender", "749cc642"},
                        {"sequence", "2"},
                        {"issued_at_us", "1699999999000000"},
                        {"receives", "0"},
                        {"redrives", "0"},
                        {"errors", "[]"},
                        {"effect_unknown", "false"},
                        {"relayed", "false"},
                        {"stored_digest", "b2f97885761ac287fdf358923c6f3c3398630f2f3ffa7ecaa71ac072d54838de"},
                        {"offered_digest", "5304ec358dda7188665c64362779dbbb626137c3dfd052c8a26e3f5a9721f7d8"}});
  CHECK(shown == expected);
  CHECK(shown.at("reason") == "conflict");
}

// The id of the sender of all that a harness commits, as who may enter the directory is shown it.
const std::pair<const std::string, std::string> shown_sender_id{"sender_id", "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"};

TEST_CASE("the id of a sender is shown with its handle to who may enter the directory and to nobody else") {
  QueueHarness harness;
  static_cast<void>(harness.commit({"not-json", slow_job("a")}));
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  using Texts = std::vector<std::pair<std::string, std::string>>;
  const std::vector<Texts> questions{{{"query", "dead-letters show"}, {"id", to_hex(letters[0].id.view())}},
                                     {{"query", "pending show"}, {"operation_id", "a"}, {"type", "slow"}}};
  for (const Texts &texts : questions) {
    CAPTURE(texts.front().second);
    Fields by_network = fields_of(wire::answer_query(*harness.store, request(texts), wire::Asker::network));
    CHECK(by_network.at("sender") == "749cc642");
    CHECK(!by_network.contains("sender_id"));
    by_network.insert(shown_sender_id);
    CHECK(fields_of(wire::answer_query(*harness.store, request(texts), wire::Asker::directory)) == by_network);
  }
}

TEST_CASE("a message that is no batch is shown whole only to who may enter the directory as it may hold its sender") {
  Harness harness;
  Batch batch;
  for (const std::string_view defect : {wire::message_malformed, wire::message_multipart}) {
    Delivery &delivery = batch.add(Bytes("not-json ") + std::string(defect));
    delivery.defect = defect;
    delivery.sender = {};
    delivery.sequence = Sequence{0};
  }
  static_cast<void>(harness.commit(batch));
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 2);
  for (const DeadLetter &letter : letters) {
    const Bytes show = request({{"query", "dead-letters show"}, {"id", to_hex(letter.id.view())}});
    const Fields by_network = fields_of(wire::answer_query(*harness.store, show, wire::Asker::network));
    CHECK(by_network.at("bytes") == "nil");
    CHECK(by_network.at("sender") == "nil");
    const Fields by_directory = fields_of(wire::answer_query(*harness.store, show, wire::Asker::directory));
    CHECK(by_directory.at("bytes") == "bin " + to_hex(letter.bytes));
    CHECK(by_directory.at("sender_id") == "nil");
  }
}

TEST_CASE("an answer from what may not be on stable storage says so and any other does not") {
  Harness harness;
  static_cast<void>(harness.commit({job_bytes("demo-1", {1}), "no job"}));
  const std::vector<Bytes> questions{
      request({{"query", "get"}, {"operation_id", "demo-1"}}),
      request({{"query", "get"}, {"operation_id", "absent"}}),
      request({{"query", "count"}}),
      request({{"query", "dead-letters list"}}),
      request({{"query", "verify"}}),
      request({{"query", "dead-letters show"}, {"id", to_hex(harness.dead_letters().at(0).id.view())}})};
  // Whether each answer says `durable: unknown`, and nothing else of it.
  const auto unknown = [&](const Store &store) {
    std::size_t saying = 0;
    for (const Bytes &question : questions) {
      const Bytes answer = wire::answer_query(store, question, wire::Asker::directory);
      std::vector<messagepack::Token> tokens;
      REQUIRE(messagepack::tokenize(answer, tokens, 10'000)); // a whole map, with one pair more
      const bool says = answer.ends_with("\xA7"
                                         "durable\xA7unknown");
      CHECK((says || answer.find("durable\xA7unknown") == std::string::npos));
      saying += says ? 1 : 0;
    }
    return saying;
  };
  CHECK(unknown(*harness.store) == 0);
  harness.options.read_only = true;
  harness.reopen();
  CHECK(unknown(*harness.store) == 0); // it was closed in order
  harness.options.read_only = false;
  harness.options.durability = Durability::page_cache;
  harness.reopen();
  static_cast<void>(harness.commit_one(job_bytes("demo-2", {1})));
  CHECK(unknown(*harness.store) == questions.size());
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
    CHECK(error_of(wire::answer_query(*harness.store, bytes, wire::Asker::network))["code"] == "usage");
  }
}

TEST_CASE("a request cut short at any byte is answered with an error") {
  Harness harness;
  const Bytes whole = request({{"query", "get"}, {"operation_id", "demo-1"}, {"type", "sum"}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(error_of(wire::answer_query(*harness.store, whole.substr(0, size), wire::Asker::network))["code"] == "usage");
}

// --- Queued jobs ----------------------------------------------------------------------------------------------------

struct QueueQueries : QueueHarness {
  using Texts = std::vector<std::pair<std::string, std::string>>;
  [[nodiscard]] Bytes ask(const Texts &texts) const {
    return wire::answer_query(*store, request(texts), wire::Asker::network);
  }
  // With a number, a flag or bytes beside the texts, as `write` writes it.
  template <class Write> [[nodiscard]] Bytes change(const Texts &texts, Write &&write) {
    Bytes asked;
    Writer writer(asked);
    writer.map(texts.size() + 1);
    for (const auto &[name, value] : texts)
      writer.string(name).string(value);
    write(writer);
    std::optional<Error> failure;
    Bytes answer = wire::answer_change(*store, handlers, asked, failure);
    CHECK(!failure);
    return answer;
  }
  [[nodiscard]] Bytes change(const Texts &texts) {
    std::optional<Error> failure;
    return wire::answer_change(*store, handlers, request(texts), failure);
  }
  [[nodiscard]] Bytes resolve_as_applied(const Texts &address, BytesView result) {
    Texts texts{{"query", "pending resolve"}, {"effect", "applied"}, {"by", "kim"}, {"why", "INC-7"}};
    texts.insert(texts.end(), address.begin(), address.end());
    return change(texts, [&](Writer &writer) { writer.string("result").binary(result); });
  }
  void hold(std::string_view operation_id) {
    CHECK(commit_one(pay_job(operation_id)).outcome == Outcome::accepted);
    CHECK(receive(operation_id, "pay").answer == store::Received::Answer::job);
    CHECK(settle(operation_id, unknown("no answer"), "pay") == store::QueueSettled::held);
  }
};

const QueueQueries::Texts pay_a{{"type", "pay"}, {"operation_id", "a"}};

Bytes held_request() {
  Bytes asked;
  Writer(asked).map(2).string("query").string("pending list").string("held").boolean(true);
  return asked;
}

TEST_CASE("a list of queued jobs says of each what state it is in and what went wrong last") {
  QueueQueries harness;
  harness.hold("a");
  harness.clock.now += std::chrono::seconds(1);
  CHECK(harness.commit_one(slow_job("b", 1, "event-7")).outcome == Outcome::accepted);
  const QueuePage page = queue_page_of(harness.ask({{"query", "pending list"}}));
  REQUIRE(page.rows.size() == 2);
  CHECK(page.next == "nil");
  CHECK(page.damaged == "0");
  CHECK(page.rows[0] == Fields{{"operation_id", "a"},
                               {"type", "pay"},
                               {"effect_key", "nil"},
                               {"idempotency_key", idempotency_key_of(key_of("a", "pay"))},
                               {"state", "held"},
                               {"owner", "treasury"},
                               {"effect_unknown", "true"},
                               {"receives", "1"},
                               {"receives_total", "1"},
                               {"redrives", "0"},
                               {"accepted_at_us", "1700000000000000"},
                               {"changed_at_us", "1700000000000000"},
                               {"error", "no answer"}});
  CHECK(page.rows[1] == Fields{{"operation_id", "b"},
                               {"type", "slow"},
                               {"effect_key", "event-7"},
                               {"idempotency_key", idempotency_key_of(key_of_effect("event-7").bytes)},
                               {"state", "waiting"},
                               {"owner", "nil"},
                               {"effect_unknown", "false"},
                               {"receives", "0"},
                               {"receives_total", "0"},
                               {"redrives", "0"},
                               {"accepted_at_us", "1700000001000000"},
                               {"changed_at_us", "1700000001000000"},
                               {"error", "nil"}});
}

TEST_CASE("queued jobs are listed page by page and by their type and only those that are held") {
  QueueQueries harness;
  std::vector<Bytes> jobs;
  for (std::size_t at = 0; at < limits::rows_per_answer_max + 7; ++at)
    jobs.push_back(slow_job("job-" + std::to_string(at)));
  CHECK(harness.commit(jobs).size() == jobs.size());
  harness.hold("a");
  harness.hold("b");
  const QueuePage first = queue_page_of(harness.ask({{"query", "pending list"}}));
  CHECK(first.rows.size() == limits::rows_per_answer_max);
  CHECK(first.next == to_hex(key_of(first.rows.back().at("operation_id"))));
  const QueuePage second = queue_page_of(harness.ask({{"query", "pending list"}, {"after", first.next}}));
  CHECK(second.rows.size() == 9); // the keys of `pay` come first, those of `slow` after them
  CHECK(second.next == "nil");
  CHECK(joined(queue_page_of(harness.ask({{"query", "pending list"}, {"type", "pay"}})).rows, "operation_id") == "a b");
  CHECK(queue_page_of(harness.ask({{"query", "pending list"}, {"type", "no"}})).rows.empty());
  CHECK(joined(queue_page_of(wire::answer_query(*harness.store, held_request(), wire::Asker::network)).rows, "state") ==
        "held held");
}

TEST_CASE("show gives a queued job with its bytes and errors and token") {
  QueueQueries harness;
  CHECK(harness.commit_one(pay_job("a")).outcome == Outcome::accepted);
  const QueueQueries::Texts show{{"query", "pending show"}, {"operation_id", "a"}, {"type", "pay"}};
  CHECK(fields_of(harness.ask(show)).at("token") == "nil");
  for (const char *error : {"first", "second"}) {
    CHECK(harness.receive("a", "pay").answer == store::Received::Answer::job);
    CHECK(harness.settle("a", try_again(error), "pay") == store::QueueSettled::waiting);
  }
  CHECK(fields_of(harness.ask(show)) == Fields{{"found", "true"},
                                               {"operation_id", "a"},
                                               {"type", "pay"},
                                               {"effect_key", "nil"},
                                               {"idempotency_key", idempotency_key_of(key_of("a", "pay"))},
                                               {"state", "waiting"},
                                               {"owner", "treasury"},
                                               {"effect_unknown", "false"},
                                               {"receives", "2"},
                                               {"receives_total", "2"},
                                               {"redrives", "0"},
                                               {"accepted_at_us", "1700000000000000"},
                                               {"changed_at_us", "1700000000000000"},
                                               {"errors", "[first, second]"},
                                               {"token", "00000000000000010000000000000002"},
                                               {"bytes", "bin " + to_hex(pay_job("a"))},
                                               {"sender", "749cc642"},
                                               {"sequence", "1"},
                                               {"issued_at_us", "1699999999000000"}});
  CHECK(fields_of(harness.ask({{"query", "pending show"}, {"operation_id", "a"}})) == Fields{{"found", "false"}});
  CHECK(error_of(harness.ask({{"query", "pending show"}}))["concerns"] == "pending show");
  CHECK(error_of(harness.ask({{"query", "pending list"}, {"after", "xyz"}}))["code"] == "usage");
}

TEST_CASE("a held job is resolved once and the audit names its key") {
  QueueQueries harness;
  harness.hold("a");
  CHECK(error_of(harness.ask({{"query", "pending resolve"}}))["code"] == "usage");
  const Bytes not_shortest("\xCD\x00\x07", 3);
  CHECK(fields_of(harness.resolve_as_applied(pay_a, not_shortest)) ==
        Fields{{"outcome", "stored"}, {"resolved", "true"}});
  CHECK(harness.row("a", "pay")->result == integer_result(7)); // in canonical form
  CHECK(error_of(harness.resolve_as_applied(pay_a, integer_result(7)))["code"] == "not_found");
  harness.hold("b");
  CHECK(fields_of(harness.change({{"query", "pending resolve"},
                                  {"type", "pay"},
                                  {"operation_id", "b"},
                                  {"effect", "absent"},
                                  {"by", "kim"},
                                  {"why", "INC-8"}})) == Fields{{"outcome", "accepted"}, {"resolved", "true"}});
  CHECK(harness.queued(key_of("b", "pay")).state == store::QueueState::waiting);
  const auto audit = rows_of(harness.ask({{"query", "audit"}}));
  REQUIRE(audit.size() == 2);
  CHECK(audit[0] == Fields{{"number", "1"},
                           {"changed_at_us", "1700000000000000"},
                           {"action", "resolve"},
                           {"id", "nil"},
                           {"operation_id", "a"},
                           {"type", "pay"},
                           {"effect_key", "nil"},
                           {"outcome", "stored"},
                           {"by", "kim"},
                           {"why", "INC-7"}});
  CHECK(audit[1].at("operation_id") == "b");
  CHECK(audit[1].at("outcome") == "accepted");
  harness.check_sound();
}

TEST_CASE("a resolution that does not say what became of the effect changes nothing") {
  QueueQueries harness;
  harness.hold("a");
  const Bytes large = Bytes("\xC6\x00\x01\x00\x01", 5) + Bytes(limits::result_bytes_max + 1, 'r');
  for (const Bytes &result : {Bytes(), Bytes("\xC1"), Bytes("\x01\x02", 2), large})
    CHECK(error_of(harness.resolve_as_applied(pay_a, result))["code"] == "usage");
  using Texts = QueueQueries::Texts;
  const Texts address{{"query", "pending resolve"}, {"type", "pay"}, {"operation_id", "a"}};
  const Texts kim_says{{"by", "kim"}, {"why", "INC-7"}};
  for (const Texts &more : {Texts{}, Texts{{"effect", "applied"}}, Texts{{"effect", "perhaps"}}}) {
    Texts texts = address;
    texts.insert(texts.end(), more.begin(), more.end());
    CHECK(error_of(harness.change(texts))["code"] == "usage");
    texts.insert(texts.end(), kim_says.begin(), kim_says.end());
    CHECK(error_of(harness.change(texts))["code"] == "usage");
  }
  Texts absent_with_a_result = address;
  absent_with_a_result.emplace_back("effect", "absent");
  absent_with_a_result.insert(absent_with_a_result.end(), kim_says.begin(), kim_says.end());
  CHECK(error_of(harness.change(absent_with_a_result, [](Writer &writer) {
          writer.string("result").binary(integer_result(1));
        }))["code"] == "usage");
  CHECK(harness.queued(key_of("a", "pay")).state == store::QueueState::held);
  CHECK(rows_of(harness.ask({{"query", "audit"}})).empty());
}

TEST_CASE("what changes a queued job is no query and is not for the network") {
  CHECK(wire::kind_of_query("pending resolve") == wire::QueryKind::changes);
  CHECK(wire::kind_of_query("pending list") == wire::QueryKind::reads);
  CHECK(wire::kind_of_query("pending show") == wire::QueryKind::reads);
}

TEST_CASE("get tells the phase of a job that is pending or has failed and gives it no result") {
  QueueQueries harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  const QueueQueries::Texts get{{"query", "get"}, {"operation_id", "a"}, {"type", "slow"}};
  CHECK(fields_of(harness.ask(get)).at("phase") == "pending");
  CHECK(fields_of(harness.ask(get)).at("result") == "nil");
  CHECK(harness.receive("a").answer == store::Received::Answer::job);
  CHECK(harness.settle("a", refused("no")) == store::QueueSettled::failed);
  CHECK(fields_of(harness.ask(get)).at("phase") == "failed");
  CHECK(fields_of(harness.ask(get)).at("result") == "nil");
}

TEST_CASE("a dead letter of a queued job has its errors and says that its effect is unknown") {
  QueueQueries harness;
  CHECK(harness.commit_one(pay_job("a")).outcome == Outcome::accepted);
  for (const char *error : {"first", "killed"}) {
    CHECK(harness.receive("a", "pay").answer == store::Received::Answer::job);
    const bool last = std::string_view(error) == "killed";
    CHECK(harness.settle("a",
                         {.verdict = last ? store::QueueVerdict::exhausted : store::QueueVerdict::try_again,
                          .error = error,
                          .effect = store::QueueEffect::unknown},
                         "pay") == (last ? store::QueueSettled::failed : store::QueueSettled::waiting));
  }
  const auto listed = rows_of(harness.ask({{"query", "dead-letters list"}}));
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].at("effect_unknown") == "true");
  const Fields shown = fields_of(harness.ask({{"query", "dead-letters show"}, {"id", listed[0].at("id")}}));
  CHECK(shown.at("errors") == "[first, killed]");
  CHECK(shown.at("effect_unknown") == "true");
  CHECK(shown.at("detail") == "killed");
}

TEST_CASE("verify tells how many jobs are queued") {
  QueueQueries harness;
  CHECK(harness.commit({slow_job("a"), slow_job("b"), job_bytes("c", {1})}).size() == 3);
  const Fields found = fields_of(harness.ask({{"query", "verify"}}));
  CHECK(found.at("operations") == "3");
  CHECK(found.at("queued") == "2");
  CHECK(found.at("problems") == "0");
}

TEST_CASE("a list of queued jobs counts those whose rows are damaged") {
  QueueQueries harness;
  CHECK(harness.commit({slow_job("a"), slow_job("b")}).size() == 2);
  harness.close();
  RawDatabase(harness.directory.path()).put("queue", key_of("a"), "garbage");
  harness.open();
  const QueuePage page = queue_page_of(harness.ask({{"query", "pending list"}}));
  CHECK(joined(page.rows, "operation_id") == "b");
  CHECK(page.damaged == "1");
  CHECK(error_of(harness.ask({{"query", "pending show"}, {"operation_id", "a"}, {"type", "slow"}}))["code"] ==
        "corrupt");
}

TEST_CASE("a request that no worker would read is refused before it is sent") {
  const Bytes long_request(limits::query_bytes_max, 'q');
  const auto answer = wire::ask("tcp://127.0.0.1:1", long_request, std::chrono::steady_clock::now());
  REQUIRE(!answer.has_value());
  CHECK(answer.error().code == ErrorCode::usage);
}

} // namespace
} // namespace onced::testing
