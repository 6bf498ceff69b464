// answer_query on a real store: what is asked of rows and dead letters, and every way to ask wrongly. Not here: what
// redrives and purges do (the store's tests), who may ask what (real processes).
#include <string>
#include <vector>

#include "onced/limits.hpp"
#include "support/raw_database.hpp"
#include "unit/admin/answers.hpp"
#include "wire/messages.hpp"

namespace onced::testing {
namespace {

struct Harness : StoreHarness {
  Harness() { open(); }
  Bytes ask(const std::vector<std::pair<std::string, std::string>> &texts) {
    return admin::answer_query(*store, request(texts), admin::Asker::network);
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
    return rows_of(admin::answer_query(*harness.store, asked, admin::Asker::network)).size();
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
    Fields by_network = fields_of(admin::answer_query(*harness.store, request(texts), admin::Asker::network));
    CHECK(by_network.at("sender") == "749cc642");
    CHECK(!by_network.contains("sender_id"));
    by_network.insert(shown_sender_id);
    CHECK(fields_of(admin::answer_query(*harness.store, request(texts), admin::Asker::directory)) == by_network);
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
    const Fields by_network = fields_of(admin::answer_query(*harness.store, show, admin::Asker::network));
    CHECK(by_network.at("bytes") == "nil");
    CHECK(by_network.at("sender") == "nil");
    const Fields by_directory = fields_of(admin::answer_query(*harness.store, show, admin::Asker::directory));
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
      const Bytes answer = admin::answer_query(store, question, admin::Asker::directory);
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
    CHECK(error_of(admin::answer_query(*harness.store, bytes, admin::Asker::network))["code"] == "usage");
  }
}

TEST_CASE("a request cut short at any byte is answered with an error") {
  Harness harness;
  const Bytes whole = request({{"query", "get"}, {"operation_id", "demo-1"}, {"type", "sum"}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(error_of(admin::answer_query(*harness.store, whole.substr(0, size), admin::Asker::network))["code"] ==
          "usage");
}

} // namespace
} // namespace onced::testing
