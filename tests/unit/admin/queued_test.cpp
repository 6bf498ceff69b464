// Queries and resolutions of queued jobs on a real store. Not here: who may ask what (real processes).
#include <string>
#include <vector>

#include "support/raw_database.hpp"
#include "unit/admin/answers.hpp"

namespace onced::testing {
namespace {

struct QueueQueries : QueueHarness {
  using Texts = std::vector<std::pair<std::string, std::string>>;
  [[nodiscard]] Bytes ask(const Texts &texts) const {
    return admin::answer_query(*store, request(texts), admin::Asker::network);
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
    Bytes answer = admin::answer_change(*store, handlers, asked, failure);
    CHECK(!failure);
    return answer;
  }
  [[nodiscard]] Bytes change(const Texts &texts) {
    std::optional<Error> failure;
    return admin::answer_change(*store, handlers, request(texts), failure);
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
  CHECK(joined(queue_page_of(admin::answer_query(*harness.store, held_request(), admin::Asker::network)).rows,
               "state") == "held held");
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

TEST_CASE("what changes something or tells who did needs the right to operate and all else may be read by anyone") {
  for (const char *name : {"dead-letters redrive", "dead-letters purge", "pending resolve", "audit", "verify"})
    CHECK(admin::find_query(name)->right == admin::Right::operate);
  for (const char *name :
       {"get", "count", "stats", "dead-letters list", "dead-letters show", "pending list", "pending show"})
    CHECK(admin::find_query(name)->right == admin::Right::read);
  for (const char *name : {"dead-letters redrive", "dead-letters purge", "pending resolve"})
    CHECK(admin::find_query(name)->changes());
  CHECK_FALSE(admin::find_query("audit")->changes());
  CHECK(admin::find_query("drop") == nullptr);
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

} // namespace
} // namespace onced::testing
