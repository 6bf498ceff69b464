// The store's side of queued jobs: how one comes into custody, what each step of its life writes, what deliveries are
// answered meanwhile, and what redrives, purges and resolutions do. Not here: when a job is handed to whom (the
// leases), threads (queue_races_test.cpp), long histories (queue_model_test.cpp), and power loss.
#include <doctest/doctest.h>

#include "store/rows/records.hpp"
#include "support/faulty_environment.hpp"
#include "support/queue_harness.hpp"
#include "support/raw_database.hpp"
#include "support/scene.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

using Outcomes = std::vector<Outcome>;
using Answer = Received::Answer;

// Every row of a closed store that queued jobs may change.
struct QueueRows {
  explicit QueueRows(StoreHarness &harness) {
    harness.close();
    {
      const RawDatabase raw(harness.directory.path());
      sequence = raw.last_sequence();
      rows = {raw.rows("operations"), raw.rows("queue"), raw.rows("dead_letters")};
    }
    harness.open();
  }
  bool operator==(const QueueRows &other) const { return rows == other.rows; }

  std::uint64_t sequence = 0;
  std::vector<std::map<Bytes, Bytes>> rows;
};

} // namespace

// --- Into custody ---------------------------------------------------------------------------------------------------

TEST_CASE("a job of a queued type is accepted and holds its key with all that is needed to handle it") {
  QueueHarness harness;
  const Bytes job = slow_job("a", 1, "event");
  const Batch batch({job});
  const Delivery &delivery = batch.view()[0];
  const Settlement settlement = harness.commit(batch).at(0);
  CHECK(settlement.outcome == Outcome::accepted);
  CHECK(settlement.result.empty());
  CHECK(settlement.detail.empty());

  for (const bool again : {false, true}) {
    if (again) harness.reopen();
    const auto operation = harness.store->get(*delivery.key).value().value();
    CHECK(operation.phase == Phase::pending);
    CHECK(operation.digest == delivery.digest);
    CHECK(operation.result.empty());
    CHECK(operation.operation_id == "a");
    CHECK(operation.type == "slow");
    CHECK(operation.effect_key == "event");
    CHECK(operation.issued_at == delivery.issued_at);
    CHECK(operation.committed_at == harness.clock.now);
    const QueueRow row = harness.queued(delivery.key->bytes);
    CHECK(row.state == QueueState::waiting);
    CHECK(!row.effect_unknown);
    CHECK(row.bytes == job);
    CHECK(row.operation_id == "a");
    CHECK(row.type == "slow");
    CHECK(row.effect_key == "event");
    CHECK(row.sender == delivery.sender);
    CHECK(row.sequence == delivery.sequence);
    CHECK(row.issued_at == delivery.issued_at);
    CHECK(row.accepted_at == harness.clock.now);
    CHECK(row.changed_at == harness.clock.now);
    CHECK(row.receives == 0);
    CHECK(row.receives_total == 0);
    CHECK(row.redrives == 0);
    CHECK(row.token == FencingToken{});
    CHECK(row.owner.empty());
    CHECK(row.errors.empty());
  }
  CHECK(harness.counts().pending == 1);
  CHECK(harness.counts().results == 0);
  harness.check_sound();
}

TEST_CASE("a batch of queued and inline and bad jobs takes one commit and one sync") {
  StoreCounters counters;
  QueueHarness harness;
  harness.options.counters = &counters;
  harness.reopen();
  const auto settled = harness.commit({slow_job("a"), job_bytes("b", {1}), "bad", slow_job("c"), slow_job("a")});
  CHECK(outcomes_of(settled) ==
        Outcomes{Outcome::accepted, Outcome::stored, Outcome::invalid, Outcome::accepted, Outcome::accepted});
  CHECK(counters.commits == 1);
  CHECK(counters.log_syncs == 1);
  CHECK(harness.counts().pending == 2);
  harness.check_sound();
}

TEST_CASE("a pending job that comes again is accepted again and writes nothing and uses up no receive") {
  QueueHarness harness;
  CHECK(outcomes_of(harness.commit({slow_job("a"), slow_job("a")})) == Outcomes(2, Outcome::accepted));
  CHECK(harness.receive("a").answer == Answer::job);
  const QueueRows before(harness);
  harness.clock.now += std::chrono::hours(1);
  for (int round = 0; round < 5; ++round)
    CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  const QueueRows after(harness);
  CHECK(after == before);
  CHECK(after.sequence == before.sequence + 3); // the opening between them wrote `format`, `boots`, `identity`
  CHECK(harness.queued(key_of("a")).receives == 1);
}

TEST_CASE("another payload under a pending key is a conflict in its batch and later") {
  QueueHarness harness;
  CHECK(outcomes_of(harness.commit({slow_job("a", 1), slow_job("a", 2)})) ==
        Outcomes{Outcome::accepted, Outcome::conflict});
  CHECK(harness.commit_one(slow_job("a", 3)).outcome == Outcome::conflict);
  CHECK(harness.commit_one(slow_job("a", 1)).outcome == Outcome::accepted);
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 2);
  for (const DeadLetter &letter : letters)
    CHECK(letter.stored_phase == Phase::pending);
  harness.check_sound();
}

TEST_CASE("a queued and an inline job under one effect key are one effect") {
  const Bytes queued = slow_job("a", 1, "event");
  const Bytes summed = job_bytes({.operation_id = "b", .numbers = {1}, .effect_key = "event"});
  for (const bool in_one_batch : {true, false}) {
    CAPTURE(in_one_batch);
    for (const bool queued_first : {true, false}) {
      CAPTURE(queued_first);
      QueueHarness harness;
      const std::vector<Bytes> jobs{queued_first ? queued : summed, queued_first ? summed : queued};
      Outcomes outcomes;
      if (in_one_batch) {
        outcomes = outcomes_of(harness.commit(jobs));
      } else {
        outcomes = {harness.commit_one(jobs[0]).outcome, harness.commit_one(jobs[1]).outcome};
      }
      CHECK(outcomes == Outcomes{queued_first ? Outcome::accepted : Outcome::stored, Outcome::conflict});
      CHECK(harness.counts().pending + harness.counts().results == 1);
      harness.check_sound();
    }
  }
}

TEST_CASE("the caches know of a queued job only once it is committed") {
  QueueHarness harness;
  // The second is too long to be remembered by its bytes.
  const std::vector<Bytes> jobs{slow_job("a"), slow_job(std::string(250, 'b'))};
  const auto recalled = [&] {
    const std::vector<BytesView> views(jobs.begin(), jobs.end());
    std::vector<Recollection> recollections(jobs.size());
    harness.store->recall(views, recollections);
    return recollections[0].committed || recollections[1].committed;
  };
  for (int round = 0; round < 3; ++round) {
    CHECK(outcomes_of(harness.commit(jobs)) == Outcomes(2, Outcome::accepted));
    CHECK(!recalled());
  }
  for (const std::string &id : {std::string("a"), std::string(250, 'b')}) {
    CHECK(harness.receive(id).answer == Answer::job);
    CHECK(harness.settle(id, refused("no")) == QueueSettled::failed);
  }
  for (int round = 0; round < 3; ++round) {
    CHECK(outcomes_of(harness.commit(jobs)) == Outcomes(2, Outcome::failed));
    CHECK(!recalled());
  }
  for (const DeadLetter &letter : harness.dead_letters())
    CHECK(harness.redrive(letter.id).removed);
  CHECK(outcomes_of(harness.commit(jobs)) == Outcomes(2, Outcome::accepted));
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", done(1)) == QueueSettled::committed);
  CHECK(outcomes_of(harness.commit(jobs)) == Outcomes{Outcome::duplicate, Outcome::accepted});
  CHECK(recalled());
}

TEST_CASE("a full queue answers busy for new queued jobs alone and a settled one makes room") {
  QueueHarness harness;
  harness.options.queue_jobs_max = 2;
  harness.reopen();
  CHECK(
      outcomes_of(harness.commit(
          {slow_job("a"), slow_job("b"), slow_job("c"), slow_job("c", 9), slow_job("a"), job_bytes("inline", {1})})) ==
      Outcomes{Outcome::accepted, Outcome::accepted, Outcome::busy, Outcome::busy, Outcome::accepted, Outcome::stored});
  CHECK(harness.dead_letters().empty()); // what is not in custody conflicts with nothing
  harness.reopen();
  const Settlement full = harness.commit_one(slow_job("c"));
  CHECK(full.outcome == Outcome::busy);
  CHECK(full.detail.find("queue is at its cap") != std::string::npos);
  CHECK(!harness.store->get(key_of_operation("slow", "c")).value());
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", done(7)) == QueueSettled::committed);
  CHECK(harness.commit_one(slow_job("c")).outcome == Outcome::accepted);
  CHECK(harness.commit_one(slow_job("d")).outcome == Outcome::busy);
  harness.check_sound();
}

TEST_CASE("the bytes of queued jobs are held to their cap") {
  QueueHarness harness;
  harness.options.queue_bytes_max = slow_job("a").size() * 2;
  harness.reopen();
  CHECK(outcomes_of(harness.commit({slow_job("a"), slow_job("b"), slow_job("c")})) ==
        Outcomes{Outcome::accepted, Outcome::accepted, Outcome::busy});
  harness.reopen();
  CHECK(harness.commit_one(slow_job("c")).outcome == Outcome::busy);
  CHECK(harness.receive("b").answer == Answer::job);
  CHECK(harness.settle("b", refused("no")) == QueueSettled::failed);
  CHECK(harness.commit_one(slow_job("c")).outcome == Outcome::accepted);
  harness.check_sound();
}

TEST_CASE("a job that another batch queues first takes room once") {
  QueueHarness harness;
  harness.options.queue_jobs_max = 2;
  harness.reopen();
  // Runs when its batch has looked every key up and not yet locked any.
  Outcome first = Outcome::busy;
  const auto meanwhile = [&](const HandlerCall &) -> HandlerResult {
    const Batch other({slow_job("a")});
    const auto settled = harness.store->commit(other.view(), harness.handlers);
    if (settled) first = settled->at(0).outcome;
    return Done{integer_result(1)};
  };
  REQUIRE(harness.handlers.add_inline("meanwhile", meanwhile).has_value());
  CHECK(outcomes_of(
            harness.commit({slow_job("a"), job_bytes({.operation_id = "m", .numbers = {}, .type = "meanwhile"})})) ==
        Outcomes{Outcome::accepted, Outcome::stored});
  CHECK(first == Outcome::accepted);
  CHECK(harness.counts().pending == 1);
  CHECK(harness.commit_one(slow_job("b")).outcome == Outcome::accepted);
  CHECK(harness.commit_one(slow_job("c")).outcome == Outcome::busy);
  harness.check_sound();
}

// --- Receives -------------------------------------------------------------------------------------------------------

TEST_CASE("a receive gives the job and is counted under its token before it returns") {
  QueueHarness harness;
  const Bytes bytes = slow_job("a", 42, "event");
  const Bytes key = key_of_effect("event").bytes;
  CHECK(harness.commit_one(bytes).outcome == Outcome::accepted);
  harness.clock.now += std::chrono::minutes(1);
  const FencingToken token = harness.next_token();
  const Received received = harness.receive_key(key, token);
  REQUIRE(received.answer == Answer::job);
  const Batch batch({bytes});
  CHECK(received.job.payload == batch.view()[0].job->payload);
  CHECK(received.job.operation_id == "a");
  CHECK(received.job.type == "slow");
  CHECK(received.job.effect_key == "event");
  CHECK(received.row.bytes.empty());
  CHECK(received.row.receives == 1);
  CHECK(received.row.receives_total == 1);
  CHECK(received.row.token == token);
  for (const bool again : {false, true}) {
    if (again) harness.reopen();
    const QueueRow row = harness.queued(key);
    CHECK(row.state == QueueState::leased);
    CHECK(row.receives == 1);
    CHECK(row.token == token);
    CHECK(row.changed_at == harness.clock.now);
    CHECK(row.accepted_at < row.changed_at);
    CHECK(row.bytes == bytes);
  }
  harness.check_sound();
}

TEST_CASE("a receive after a crash has a greater token and goes on counting") {
  QueueHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  const FencingToken first = harness.next_token();
  CHECK(harness.receive_key(key_of("a"), first).answer == Answer::job);
  harness.reopen();
  CHECK(harness.receive_key(key_of("a"), first).answer == Answer::stale);
  CHECK(harness.receive_key(key_of("a"), {.boot = first.boot, .count = first.count - 1}).answer == Answer::stale);
  CHECK(harness.queued(key_of("a")).receives == 1);
  const Received again = harness.receive("a");
  CHECK(again.answer == Answer::job);
  CHECK(again.row.receives == 2);
  CHECK(again.row.token > first);
  CHECK(!again.row.effect_unknown); // it touches nothing outside
  CHECK(harness.settle_key(key_of("a"), first, done(1)) == QueueSettled::stale);
  CHECK(harness.settle("a", done(2)) == QueueSettled::committed);
}

TEST_CASE("an external job is calling under its owner and a call that never settled leaves its effect unknown") {
  QueueHarness harness;
  CHECK(harness.commit_one(pay_job("a")).outcome == Outcome::accepted);
  const Received first = harness.receive("a", "pay");
  CHECK(first.answer == Answer::job);
  CHECK(!first.row.effect_unknown);
  QueueRow row = harness.queued(key_of("a", "pay"));
  CHECK(row.state == QueueState::calling);
  CHECK(row.owner == "treasury");
  harness.reopen();
  CHECK(harness.receive("a", "pay").row.effect_unknown);
  row = harness.queued(key_of("a", "pay"));
  CHECK(row.state == QueueState::calling);
  CHECK(row.effect_unknown);
  CHECK(harness.settle("a", try_again("no line"), "pay") == QueueSettled::waiting); // which says nothing of it
  CHECK(harness.queued(key_of("a", "pay")).effect_unknown);
  CHECK(harness.receive("a", "pay").answer == Answer::job);
  CHECK(harness.settle("a", {.verdict = QueueVerdict::try_again, .error = "absent", .effect = QueueEffect::absent},
                       "pay") == QueueSettled::waiting);
  CHECK(!harness.queued(key_of("a", "pay")).effect_unknown);
  harness.check_sound();
}

TEST_CASE("a lease that is given back has used up no receive") {
  QueueHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", try_again("busy line")) == QueueSettled::waiting);
  CHECK(harness.receive("a").row.receives == 2);
  CHECK(harness.give_back("a") == QueueSettled::waiting);
  const QueueRow row = harness.queued(key_of("a"));
  CHECK(row.state == QueueState::waiting);
  CHECK(row.receives == 1);
  CHECK(row.receives_total == 1);
  CHECK(harness.give_back("a") == QueueSettled::stale); // once
  CHECK(harness.settle("a", done(1)) == QueueSettled::stale);
  CHECK(harness.queued(key_of("a")).receives == 1);
  harness.check_sound();
}

TEST_CASE("a job that is gone is neither received nor given back nor settled") {
  QueueHarness harness;
  CHECK(harness.receive("never").answer == Answer::gone);
  CHECK(harness.give_back("never") == QueueSettled::stale);
  CHECK(harness.settle("never", done(1)) == QueueSettled::stale);
  CHECK(harness.commit({slow_job("a"), job_bytes("inline", {1})}).size() == 2);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", done(1)) == QueueSettled::committed);
  CHECK(harness.receive("a").answer == Answer::gone);
  CHECK(harness.settle("a", done(2)) == QueueSettled::stale);
  CHECK(harness.receive_key(key_of_operation("sum", "inline").bytes, harness.next_token()).answer == Answer::gone);
  CHECK(harness.row("a", "slow")->result == integer_result(1));
}

// --- Settlements ----------------------------------------------------------------------------------------------------

TEST_CASE("a job that is done has its result committed and leaves the queue in one transaction") {
  StoreCounters counters;
  QueueHarness harness;
  harness.options.counters = &counters;
  harness.reopen();
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Answer::job);
  harness.clock.now += std::chrono::minutes(1);
  const std::uint64_t before = counters.commits;
  CHECK(harness.settle("a", done(7)) == QueueSettled::committed);
  CHECK(counters.commits == before + 1);
  CHECK(counters.log_syncs == counters.commits);
  for (const bool again : {false, true}) {
    if (again) harness.reopen();
    const auto row = harness.row("a", "slow").value();
    CHECK(row.phase == Phase::committed);
    CHECK(row.result == integer_result(7));
    CHECK(row.operation_id == "a");
    CHECK(row.issued_at == WallTime{std::chrono::microseconds{1'699'999'999'000'000}});
    CHECK(row.committed_at == harness.clock.now);
    CHECK(harness.counts().pending == 0);
    CHECK(harness.counts().results == 1);
    const Settlement duplicate = harness.commit_one(slow_job("a"));
    CHECK(duplicate.outcome == Outcome::duplicate);
    CHECK(duplicate.result == integer_result(7));
    CHECK(harness.commit_one(slow_job("a", 2)).outcome == Outcome::conflict);
  }
  harness.check_sound();
}

TEST_CASE("a result that may not be committed is refused and the lease goes on") {
  QueueHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Answer::job);
  const Bytes large(limits::result_bytes_max + 1, 'x');
  Bytes too_large;
  messagepack::Writer(too_large).binary(large);
  for (const Bytes &result : {Bytes(), Bytes("\xCC\x01", 2), Bytes("\x01\x01"), too_large}) {
    const auto settled = harness.store->queue().settle(key_of("a"), harness.token("a"),
                                                       {.verdict = QueueVerdict::done, .result = result});
    REQUIRE(!settled.has_value());
    CHECK(settled.error().code == ErrorCode::usage);
  }
  CHECK(harness.settle("a", done(7)) == QueueSettled::committed);
}

TEST_CASE("a job that fails is a dead letter with its bytes and errors and its key stays claimed") {
  for (const QueueVerdict verdict : {QueueVerdict::refused, QueueVerdict::exhausted}) {
    QueueHarness harness;
    const Bytes bytes = slow_job("a", 1, "event");
    const Bytes key = key_of_effect("event").bytes;
    CHECK(harness.commit_one(bytes).outcome == Outcome::accepted);
    const WallTime accepted_at = harness.clock.now;
    CHECK(harness.receive_key(key, harness.next_token()).answer == Answer::job);
    CHECK(harness.settle_key(key, harness.token_of(key), try_again("first")) == QueueSettled::waiting);
    CHECK(harness.receive_key(key, harness.next_token()).answer == Answer::job);
    harness.clock.now += std::chrono::minutes(1);
    CHECK(harness.settle_key(key, harness.token_of(key), {.verdict = verdict, .error = "second"}) ==
          QueueSettled::failed);
    const auto letters = harness.dead_letters();
    REQUIRE(letters.size() == 1);
    const DeadLetter &letter = letters[0];
    const Batch batch({bytes});
    CHECK(letter.reason == Outcome::failed);
    CHECK(letter.detail == "second");
    CHECK(letter.errors == std::vector<std::string>{"first", "second"});
    CHECK(!letter.effect_unknown);
    CHECK(letter.bytes == bytes);
    CHECK(letter.operation_id == "a");
    CHECK(letter.type == "slow");
    CHECK(letter.effect_key == "event");
    CHECK(letter.sender == batch.view()[0].sender);
    CHECK(letter.sequence == batch.view()[0].sequence);
    CHECK(letter.issued_at == batch.view()[0].issued_at);
    CHECK(letter.deliveries == 1);
    CHECK(letter.receives == 2);
    CHECK(letter.redrives == 0);
    CHECK(letter.first_at == accepted_at);
    CHECK(letter.last_at == harness.clock.now);
    CHECK(letter.offered_digest == batch.view()[0].digest);
    CHECK(!letter.stored_digest);
    CHECK(harness.counts().pending == 0);
    CHECK(harness.counts().results == 0);

    for (const bool again : {false, true}) {
      if (again) harness.reopen();
      const Settlement failed = harness.commit_one(bytes);
      CHECK(failed.outcome == Outcome::failed);
      CHECK(failed.detail == "dead letter " + to_hex(letter.id.view()));
      CHECK(harness.commit_one(slow_job("a", 2, "event")).outcome == Outcome::conflict);
      CHECK(harness.store->dead_letter(letter.id).value()->deliveries == 1); // the answer writes nothing
      CHECK(harness.receive_key(key, harness.next_token()).answer == Answer::gone);
    }
    harness.check_sound();
  }
}

TEST_CASE("the latest five errors are kept as text of bounded length") {
  QueueHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  for (int receive = 1; receive <= 7; ++receive) {
    CHECK(harness.receive("a").answer == Answer::job);
    CHECK(harness.settle("a", try_again(receive == 6 ? "\xFF" + std::string(10'000, 'e') : std::to_string(receive))) ==
          QueueSettled::waiting);
  }
  QueueRow row = harness.queued(key_of("a"));
  REQUIRE(row.errors.size() == limits::queue_errors_kept_max);
  CHECK(row.errors.front() == "3");
  CHECK(row.errors.back() == "7");
  CHECK(row.errors[3].size() <= limits::queue_error_bytes_max);
  CHECK(row.errors[3].size() > limits::queue_error_bytes_max - 4);
  CHECK(row.errors[3].starts_with("\xEF\xBF\xBD"
                                  "eee"));
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", try_again("")) == QueueSettled::waiting); // nothing to keep
  CHECK(harness.queued(key_of("a")).errors == row.errors);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", refused(std::string(5000, 'x'))) == QueueSettled::failed);
  CHECK(harness.dead_letters().at(0).detail == std::string(limits::detail_bytes_max, 'x'));
  CHECK(harness.dead_letters().at(0).errors.size() == limits::queue_errors_kept_max);
  harness.check_sound();
}

TEST_CASE("a settlement under an old token changes nothing whatever it says") {
  QueueHarness harness;
  CHECK(harness.commit({slow_job("a"), slow_job("b")}).size() == 2);
  const FencingToken old = harness.next_token();
  CHECK(harness.receive_key(key_of("a"), old).answer == Answer::job);
  CHECK(harness.receive("a").answer == Answer::job);
  const QueueRows before(harness);
  for (const QueueVerdict verdict : {QueueVerdict::done, QueueVerdict::refused, QueueVerdict::exhausted,
                                     QueueVerdict::try_again, QueueVerdict::unknown}) {
    for (const FencingToken &token : {old, FencingToken{}, FencingToken{.boot = 99, .count = 99}}) {
      CHECK(
          harness.settle_key(key_of("a"), token, {.verdict = verdict, .result = integer_result(1), .error = "late"}) ==
          QueueSettled::stale);
    }
  }
  CHECK(harness.store->queue().give_back(key_of("a"), old) == QueueSettled::stale);
  CHECK(harness.settle_key(key_of("b"), harness.token("a"), done(1)) == QueueSettled::stale); // another job's
  CHECK(QueueRows(harness) == before);
}

TEST_CASE("a waiting job whose receives are used up by now can be ended without a lease") {
  QueueHarness harness;
  CHECK(harness.commit({slow_job("a"), slow_job("b")}).size() == 2);
  CHECK(harness.receive("a").answer == Answer::job);
  JobQueue &queue = harness.store->queue();
  CHECK(queue.exhaust(key_of("a"), "1 is allowed now") == QueueSettled::stale); // it does not wait
  CHECK(harness.settle("a", try_again("no")) == QueueSettled::waiting);
  CHECK(harness.settle("a", {.verdict = QueueVerdict::exhausted, .error = "late"}) == QueueSettled::stale);
  CHECK(queue.exhaust(key_of("a"), "1 is allowed now") == QueueSettled::failed);
  CHECK(queue.exhaust(key_of("a"), "1 is allowed now") == QueueSettled::stale);
  CHECK(queue.exhaust(key_of("never"), "1 is allowed now") == QueueSettled::stale);
  const DeadLetter letter = harness.dead_letters().at(0);
  CHECK(letter.receives == 1);
  CHECK(letter.errors == std::vector<std::string>{"no", "1 is allowed now"});
  harness.check_sound();
}

TEST_CASE("dead letters at their cap keep a job that failed in the queue until there is room") {
  QueueHarness harness;
  harness.options.dead_letters_max = 1;
  harness.reopen();
  CHECK(harness.commit({slow_job("a"), "garbage"}).size() == 2);
  CHECK(harness.receive("a").answer == Answer::job);
  const QueueRows before(harness);
  CHECK(harness.settle("a", refused("no")) == QueueSettled::busy);
  CHECK(QueueRows(harness) == before);
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.store->purge(harness.dead_letters().at(0).id, kim).has_value());
  CHECK(harness.settle("a", refused("no")) == QueueSettled::failed);
  CHECK(harness.dead_letters().at(0).errors == std::vector<std::string>{"no"}); // once
  CHECK(harness.commit_one("garbage").outcome == Outcome::busy);
  harness.check_sound();
}

TEST_CASE("a job that failed inline before it was queued has one dead letter") {
  QueueHarness harness;
  Handlers inline_handlers = built_in_handlers();
  REQUIRE(inline_handlers.add_inline("slow", [](const HandlerCall &) { return Failed{"not yet"}; }).has_value());
  std::swap(harness.handlers, inline_handlers);
  CHECK(outcomes_of(harness.commit({slow_job("a"), slow_job("a")})) == Outcomes(2, Outcome::failed));
  std::swap(harness.handlers, inline_handlers);
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", refused("never")) == QueueSettled::failed);
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].detail == "never");
  CHECK(letters[0].deliveries == 3);
  harness.check_sound();
}

// --- Unknown effects ------------------------------------------------------------------------------------------------

TEST_CASE("a job of unknown effect is held until its owner says and is not received meanwhile") {
  QueueHarness harness;
  CHECK(harness.commit({pay_job("a"), slow_job("b")}).size() == 2);
  CHECK(harness.receive("a", "pay").answer == Answer::job);
  CHECK(harness.settle("a", unknown("no answer"), "pay") == QueueSettled::held);
  harness.reopen();
  CHECK(harness.receive("a", "pay").answer == Answer::held);
  CHECK(harness.settle("a", done(1), "pay") == QueueSettled::stale);
  CHECK(harness.store->queue().exhaust(key_of("a", "pay"), "no") == QueueSettled::stale);
  CHECK(harness.commit_one(pay_job("a")).outcome == Outcome::accepted);
  const auto held = harness.store->queue().held({}, 10);
  REQUIRE(held.has_value());
  REQUIRE(held->entries.size() == 1);
  CHECK(held->entries[0].key == key_of("a", "pay"));
  CHECK(held->entries[0].row.owner == "treasury");
  CHECK(held->entries[0].row.effect_unknown);
  CHECK(held->entries[0].row.errors == std::vector<std::string>{"no answer"});
  harness.check_sound();
}

TEST_CASE("a held job that is resolved as applied is committed and as absent it waits with a fresh budget") {
  for (const bool applied : {true, false}) {
    CAPTURE(applied);
    QueueHarness harness;
    CHECK(harness.commit_one(pay_job("a")).outcome == Outcome::accepted);
    CHECK(harness.receive("a", "pay").answer == Answer::job);
    CHECK(harness.settle("a", unknown("no answer"), "pay") == QueueSettled::held);
    const Key key = key_of_operation("pay", "a");
    harness.clock.now += std::chrono::hours(1);
    const std::optional<Bytes> result = applied ? std::optional(integer_result(9)) : std::nullopt;
    CHECK(harness.store->resolve(key, result, kim).has_value());
    harness.reopen();
    const auto audit = harness.store->audit(10, 0).value();
    REQUIRE(audit.size() == 1);
    CHECK(audit[0].action == "resolve");
    CHECK(audit[0].outcome == (applied ? "stored" : "accepted"));
    CHECK(audit[0].key == key.bytes);
    CHECK(audit[0].dead_letter == DeadLetterId{});
    CHECK(audit[0].by == "kim");
    CHECK(audit[0].why == "INC-7");
    CHECK(audit[0].at == harness.clock.now);
    if (applied) {
      CHECK(harness.commit_one(pay_job("a")).outcome == Outcome::duplicate);
      CHECK(harness.row("a", "pay")->result == integer_result(9));
      CHECK(harness.counts().pending == 0);
    } else {
      const QueueRow row = harness.queued(key.bytes);
      CHECK(row.state == QueueState::waiting);
      CHECK(!row.effect_unknown);
      CHECK(row.receives == 0);
      CHECK(row.receives_total == 1);
      CHECK(harness.receive("a", "pay").row.receives == 1);
    }
    const auto again = harness.store->resolve(key, result, kim);
    REQUIRE(!again.has_value());
    CHECK(again.error().code == ErrorCode::not_found);
    CHECK(harness.store->audit(10, 0)->size() == 1);
    harness.check_sound();
  }
}

TEST_CASE("a resolution needs an operator and a result that may be committed") {
  QueueHarness harness;
  CHECK(harness.commit_one(pay_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a", "pay").answer == Answer::job);
  CHECK(harness.settle("a", unknown("no answer"), "pay") == QueueSettled::held);
  const Key key = key_of_operation("pay", "a");
  const auto refused_as = [&](const std::optional<Bytes> &result, const Operator &who) {
    const auto resolved = harness.store->resolve(key, result, who);
    REQUIRE(!resolved.has_value());
    return resolved.error().code;
  };
  CHECK(refused_as(integer_result(1), {.by = "", .why = "why"}) == ErrorCode::usage);
  CHECK(refused_as(integer_result(1), {.by = "kim", .why = ""}) == ErrorCode::usage);
  CHECK(refused_as(Bytes(), kim) == ErrorCode::usage);
  CHECK(refused_as(Bytes("\xCC\x01", 2), kim) == ErrorCode::usage);
  CHECK(harness.queued(key.bytes).state == QueueState::held);
  CHECK(harness.store->audit(10, 0)->empty());
  CHECK(harness.store->resolve(key, integer_result(1), kim).has_value());
}

TEST_CASE("a dead letter of an unknown effect says so and its redrive brings that back") {
  QueueHarness harness;
  CHECK(harness.commit_one(pay_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a", "pay").answer == Answer::job);
  CHECK(harness.settle("a", {.verdict = QueueVerdict::exhausted, .error = "killed", .effect = QueueEffect::unknown},
                       "pay") == QueueSettled::failed);
  const DeadLetter letter = harness.dead_letters().at(0);
  CHECK(letter.effect_unknown);
  CHECK(harness.redrive(letter.id).settlement.outcome == Outcome::accepted);
  CHECK(harness.queued(key_of("a", "pay")).effect_unknown);
  CHECK(harness.queued(key_of("a", "pay")).state == QueueState::waiting);
  harness.check_sound();
}

// --- Redrive and purge ----------------------------------------------------------------------------------------------

TEST_CASE("a redriven queued job is pending again with a fresh budget and its history") {
  QueueHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  const WallTime accepted_at = harness.clock.now;
  CHECK(harness.receive("a").answer == Answer::job);
  const FencingToken old = harness.token("a");
  CHECK(harness.settle("a", refused("no")) == QueueSettled::failed);
  const DeadLetterId id = harness.dead_letters().at(0).id;
  harness.clock.now += std::chrono::hours(1);
  const Redriven redriven = harness.redrive(id);
  CHECK(redriven.settlement.outcome == Outcome::accepted);
  CHECK(redriven.removed);
  CHECK(harness.dead_letters().empty());
  CHECK(harness.store->audit(10, 0)->at(0).outcome == "accepted");
  for (const bool again : {false, true}) {
    if (again) harness.reopen();
    CHECK(harness.row("a", "slow")->phase == Phase::pending);
    const QueueRow row = harness.queued(key_of("a"));
    CHECK(row.state == QueueState::waiting);
    CHECK(row.bytes == slow_job("a"));
    CHECK(row.receives == 0);
    CHECK(row.receives_total == 1);
    CHECK(row.redrives == 1);
    CHECK(row.errors == std::vector<std::string>{"no"});
    CHECK(row.accepted_at == accepted_at);
    CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  }
  CHECK(harness.settle_key(key_of("a"), old, done(1)) == QueueSettled::stale);
  harness.check_sound();

  CHECK(harness.receive("a").row.receives == 1);
  CHECK(harness.settle("a", refused("again")) == QueueSettled::failed);
  const DeadLetter letter = harness.dead_letters().at(0);
  CHECK(letter.id == id);
  CHECK(letter.receives == 2);
  CHECK(letter.redrives == 1);
  CHECK(letter.first_at == accepted_at);
  CHECK(letter.errors == std::vector<std::string>{"no", "again"});
  CHECK(harness.redrive(id).removed);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", done(3)) == QueueSettled::committed);
  harness.check_sound();
}

TEST_CASE("a purge of a failed queued job frees its key") {
  QueueHarness harness;
  CHECK(harness.commit({slow_job("a", 1), slow_job("a", 2)}).size() == 2); // the second is a conflict
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", refused("no")) == QueueSettled::failed);
  CHECK(harness.commit_one(slow_job("a", 3)).outcome == Outcome::conflict);
  for (const DeadLetter &letter : harness.dead_letters()) {
    if (letter.reason == Outcome::failed) CHECK(harness.store->purge(letter.id, kim).has_value());
  }
  CHECK(!harness.row("a", "slow"));
  harness.check_sound(); // the conflicts are with a row that was never committed
  harness.reopen();
  CHECK(harness.commit_one(slow_job("a", 2)).outcome == Outcome::accepted);
  CHECK(harness.commit_one(slow_job("a", 1)).outcome == Outcome::conflict);
  harness.check_sound();
}

TEST_CASE("a purge of a damaged dead letter of a failed queued job frees its key and no other") {
  QueueHarness harness;
  CHECK(outcomes_of(harness.commit({slow_job("a"), slow_job("b"), slow_job("d")})) == Outcomes(3, Outcome::accepted));
  CHECK(harness.commit({job_bytes("c", {1}), job_bytes("c", {2})}).at(1).outcome == Outcome::conflict);
  for (const char *id : {"a", "b"}) {
    CHECK(harness.receive(id).answer == Answer::job);
    CHECK(harness.settle(id, refused("no")) == QueueSettled::failed);
  }
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 3); // two that failed and a conflict
  harness.close();
  {
    RawDatabase raw(harness.directory.path());
    for (const DeadLetter &letter : letters)
      if (letter.operation_id != "a") raw.put("dead_letters", letter.id.view(), "garbage");
  }
  harness.open();
  for (const DeadLetter &letter : letters)
    if (letter.operation_id != "a") CHECK(harness.store->purge(letter.id, kim).has_value());
  CHECK(!harness.row("b", "slow"));
  CHECK(harness.row("a", "slow")->phase == Phase::failed);
  CHECK(harness.row("c")->phase == Phase::committed);
  CHECK(harness.row("d", "slow")->phase == Phase::pending);
  CHECK(harness.counts().dead_letters == 1);
  CHECK(harness.store->audit(10, 0)->size() == 2);
  harness.reopen();
  CHECK(harness.commit_one(slow_job("b", 2)).outcome == Outcome::accepted);
}

TEST_CASE("a purge of another dead letter of a key frees nothing") {
  QueueHarness harness;
  CHECK(harness.commit({slow_job("a", 1), slow_job("a", 2)}).size() == 2);
  CHECK(harness.store->purge(harness.dead_letters().at(0).id, kim).has_value());
  CHECK(harness.row("a", "slow")->phase == Phase::pending);
  CHECK(harness.commit_one(slow_job("a", 2)).outcome == Outcome::conflict);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", refused("no")) == QueueSettled::failed);
  for (const DeadLetter &letter : harness.dead_letters()) {
    if (letter.reason == Outcome::conflict) CHECK(harness.store->purge(letter.id, kim).has_value());
  }
  CHECK(harness.row("a", "slow")->phase == Phase::failed);
  harness.check_sound();
}

TEST_CASE("a purge of an older dead letter of a failed queued job frees nothing") {
  QueueHarness harness;
  Handlers none = built_in_handlers();
  std::swap(harness.handlers, none);
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::invalid);
  std::swap(harness.handlers, none);
  const DeadLetterId older = harness.dead_letters().at(0).id;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", refused("no")) == QueueSettled::failed);
  CHECK(harness.store->purge(older, kim).has_value());
  CHECK(harness.row("a", "slow")->phase == Phase::failed);
  CHECK(harness.counts().dead_letters == 1);
  harness.check_sound();
}

TEST_CASE("a purge of a job that failed inline before it was queued frees nothing") {
  for (const bool is_done : {false, true}) {
    QueueHarness harness;
    Handlers inline_handlers = built_in_handlers();
    REQUIRE(inline_handlers.add_inline("slow", [](const HandlerCall &) { return Failed{"not yet"}; }).has_value());
    std::swap(harness.handlers, inline_handlers);
    CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::failed);
    std::swap(harness.handlers, inline_handlers);
    CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
    CHECK(harness.receive("a").answer == Answer::job);
    if (is_done) CHECK(harness.settle("a", done(1)) == QueueSettled::committed);
    CHECK(harness.store->purge(harness.dead_letters().at(0).id, kim).has_value());
    CHECK(harness.row("a", "slow")->phase == (is_done ? Phase::committed : Phase::pending));
    CHECK(harness.commit_one(slow_job("a")).outcome == (is_done ? Outcome::duplicate : Outcome::accepted));
    harness.check_sound();
  }
}

TEST_CASE("a redrive of a job whose type is queued by now takes it into custody") {
  QueueHarness harness;
  Handlers none = built_in_handlers();
  std::swap(harness.handlers, none);
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::invalid);
  std::swap(harness.handlers, none);
  const DeadLetterId id = harness.dead_letters().at(0).id;
  CHECK(harness.redrive(id).settlement.outcome == Outcome::accepted);
  CHECK(harness.dead_letters().empty());
  CHECK(harness.receive("a").answer == Answer::job);
  harness.check_sound();
}

TEST_CASE("another dead letter of a failed queued job becomes one with its own and tells it nothing new") {
  QueueHarness harness;
  Handlers none = built_in_handlers();
  std::swap(harness.handlers, none);
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::invalid);
  std::swap(harness.handlers, none);
  const DeadLetterId other = harness.dead_letters().at(0).id;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", {.verdict = QueueVerdict::refused, .error = "no", .effect = QueueEffect::unknown}) ==
        QueueSettled::failed);
  CHECK(harness.counts().dead_letters == 2);
  const Redriven redriven = harness.redrive(other);
  CHECK(redriven.settlement.outcome == Outcome::failed);
  CHECK(!redriven.removed);
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].id == redriven.id);
  CHECK(letters[0].detail == "no");
  CHECK(letters[0].errors == std::vector<std::string>{"no"});
  CHECK(letters[0].effect_unknown);
  CHECK(letters[0].deliveries == 2);
  CHECK(letters[0].receives == 1);
  CHECK(harness.counts().pending == 0);
  harness.check_sound();
  CHECK(harness.redrive(letters[0].id).removed);
  CHECK(harness.counts().pending == 1);
  harness.check_sound();
}

TEST_CASE("a redrive into a full queue is busy and writes nothing") {
  QueueHarness harness;
  harness.options.queue_jobs_max = 1;
  harness.reopen();
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", refused("no")) == QueueSettled::failed);
  CHECK(harness.commit_one(slow_job("b")).outcome == Outcome::accepted);
  const QueueRows before(harness);
  const DeadLetterId id = harness.dead_letters().at(0).id;
  for (int tries = 0; tries < 3; ++tries) {
    const Redriven redriven = harness.redrive(id);
    CHECK(redriven.settlement.outcome == Outcome::busy);
    CHECK(!redriven.removed);
  }
  CHECK(QueueRows(harness) == before);
  CHECK(harness.store->audit(10, 0)->empty());
  CHECK(harness.receive("b").answer == Answer::job);
  CHECK(harness.settle("b", done(1)) == QueueSettled::committed);
  CHECK(harness.redrive(id).removed);
  CHECK(harness.commit_one(slow_job("c")).outcome == Outcome::busy);
  harness.check_sound();
}

// --- Lists ----------------------------------------------------------------------------------------------------------

TEST_CASE("the queue is listed page by page in the order of its keys") {
  QueueHarness harness;
  std::vector<Bytes> jobs;
  jobs.reserve(25);
  for (int number = 0; number < 25; ++number)
    jobs.push_back(slow_job("job-" + std::to_string(number)));
  CHECK(outcomes_of(harness.commit(jobs)) == Outcomes(25, Outcome::accepted));
  for (int number = 0; number < 25; number += 5) {
    const std::string id = "job-" + std::to_string(number);
    CHECK(harness.receive(id).answer == Answer::job);
    CHECK(harness.settle(id, unknown("?")) == QueueSettled::held);
  }
  for (const std::size_t size : {1U, 7U, 25U, 100U}) {
    CAPTURE(size);
    std::vector<Bytes> keys;
    std::vector<Bytes> held;
    for (Bytes after;;) {
      const auto page = harness.store->queue().queued(after, size);
      REQUIRE(page.has_value());
      CHECK(page->entries.size() <= size);
      CHECK(page->damaged == 0);
      for (const QueueEntry &entry : page->entries) {
        keys.push_back(entry.key);
        CHECK(entry.row.bytes.empty());
        CHECK(entry.row.type == "slow");
        if (entry.row.state == QueueState::held) held.push_back(entry.key);
      }
      if (!page->next) break;
      CHECK(*page->next == keys.back());
      after = *page->next;
    }
    CHECK(keys.size() == 25);
    CHECK(std::is_sorted(keys.begin(), keys.end()));
    CHECK(held.size() == 5);
    std::vector<Bytes> listed;
    for (Bytes after;;) {
      const auto page = harness.store->queue().held(after, size);
      REQUIRE(page.has_value());
      for (const QueueEntry &entry : page->entries)
        listed.push_back(entry.key);
      if (!page->next) break;
      after = *page->next;
    }
    CHECK(listed == held);
    CHECK(harness.store->queue().find_queued({}, size, {.type = "pay"})->entries.empty());
    CHECK(harness.store->queue().find_queued({}, size, {.type = "slow"})->entries.size() ==
          std::min<std::size_t>(size, 25));
  }
}

TEST_CASE("a store that was opened read-only lists the queue and refuses every change") {
  QueueHarness harness;
  CHECK(harness.commit({slow_job("a"), slow_job("b")}).size() == 2);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", unknown("?")) == QueueSettled::held);
  harness.options.read_only = true;
  harness.reopen();
  JobQueue &queue = harness.store->queue();
  CHECK(queue.queued({}, 10)->entries.size() == 2);
  CHECK(queue.held({}, 10)->entries.size() == 1);
  CHECK(queue.find(key_of("b"))->value().bytes == slow_job("b"));
  CHECK(harness.counts().pending == 2);
  CHECK(harness.store->verify()->problems == 0);
  const QueuedType type{.type = "slow"};
  CHECK(queue.begin_receive(key_of("b"), {.boot = 9, .count = 9}, type).error().code == ErrorCode::usage);
  CHECK(queue.give_back(key_of("b"), {}).error().code == ErrorCode::usage);
  CHECK(queue.settle(key_of("b"), {}, refused("no")).error().code == ErrorCode::usage);
  CHECK(harness.store->resolve(key_of_operation("slow", "a"), std::nullopt, kim).error().code == ErrorCode::usage);
}

// --- Damage, failures, crashes --------------------------------------------------------------------------------------

TEST_CASE("damaged rows of a queued job are busy for it alone and are told") {
  struct Damage {
    const char *what;
    std::function<void(RawDatabase &)> harm;
    Outcome delivered; // the job, delivered again
    std::uint64_t damaged;
  };
  const Bytes key = key_of("a");
  const auto row_with_bytes = [&](RawDatabase &raw, const Bytes &bytes) {
    RecordDecoder decoder;
    QueueRow row = decoder.queued(raw.rows("queue").at(key)).value();
    row.bytes = bytes;
    Bytes value;
    encode_queued(row, value);
    raw.put("queue", key, value);
  };
  for (const Damage &damage : std::vector<Damage>{
           {"garbage in the queue", [&](RawDatabase &raw) { raw.put("queue", key, "garbage"); }, Outcome::accepted, 1},
           {"no row in the queue", [&](RawDatabase &raw) { raw.erase("queue", key); }, Outcome::accepted, 0},
           {"bytes that are no job", [&](RawDatabase &raw) { row_with_bytes(raw, "no job"); }, Outcome::accepted, 0},
           {"another payload", [&](RawDatabase &raw) { row_with_bytes(raw, slow_job("a", 9)); }, Outcome::accepted, 0},
           {"another job", [&](RawDatabase &raw) { row_with_bytes(raw, slow_job("z")); }, Outcome::accepted, 0},
           {"garbage in operations", [&](RawDatabase &raw) { raw.put("operations", key, "garbage"); }, Outcome::busy,
            0}}) {
    CAPTURE(damage.what);
    QueueHarness harness;
    CHECK(harness.commit({slow_job("a"), slow_job("b")}).size() == 2);
    harness.close();
    {
      RawDatabase raw(harness.directory.path());
      damage.harm(raw);
    }
    harness.open();
    const Received received = harness.receive("a");
    CHECK(received.answer == Answer::busy);
    CHECK(received.detail.find("damaged") != std::string::npos);
    CHECK(harness.commit_one(slow_job("a")).outcome == damage.delivered);
    CHECK(harness.store->verify()->problems > 0);
    const auto page = harness.store->queue().queued({}, 10);
    REQUIRE(page.has_value());
    CHECK(page->damaged == damage.damaged);
    CHECK(harness.store->queue().find(key).has_value() == (damage.damaged == 0));
    CHECK(harness.receive("b").answer == Answer::job);
    CHECK(harness.settle("b", done(1)) == QueueSettled::committed);
  }
}

TEST_CASE("a damaged row of a leased job answers its settlement with busy") {
  QueueHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Answer::job);
  const FencingToken token = harness.token("a");
  harness.close();
  RawDatabase(harness.directory.path()).put("queue", key_of("a"), "garbage");
  harness.open();
  CHECK(harness.settle_key(key_of("a"), token, done(1)) == QueueSettled::busy);
  CHECK(harness.settle_key(key_of("a"), token, refused("no")) == QueueSettled::busy);
  CHECK(harness.store->queue().give_back(key_of("a"), token) == QueueSettled::busy);
  CHECK(harness.store->resolve(key_of_operation("slow", "a"), std::nullopt, kim).error().code == ErrorCode::corrupt);
  CHECK(harness.store->queue().find(key_of("a")).error().code == ErrorCode::corrupt);
}

TEST_CASE("a step whose sync fails is unknown and so is everything after it until the store is opened again") {
  for (const std::string step : {"receive", "give back", "settle"}) {
    CAPTURE(step);
    const auto faults = std::make_shared<Faults>();
    QueueHarness harness;
    harness.options.environment = faulty_environment(faults);
    harness.reopen();
    CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
    if (step != "receive") CHECK(harness.receive("a").answer == Answer::job);
    const FencingToken token = step == "receive" ? harness.next_token() : harness.token("a");
    JobQueue &queue = harness.store->queue();
    faults->fail_from(FaultAt::log_sync, 1);
    if (step == "receive") {
      CHECK(queue.begin_receive(key_of("a"), token, {.type = "slow"}).error().code == ErrorCode::store_unavailable);
    } else if (step == "give back") {
      CHECK(queue.give_back(key_of("a"), token).error().code == ErrorCode::store_unavailable);
    } else {
      CHECK(queue.settle(key_of("a"), token, done(1)).error().code == ErrorCode::store_unavailable);
    }
    faults->clear();
    CHECK(queue.settle(key_of("a"), token, done(1)).error().code == ErrorCode::store_unavailable);
    const Batch batch({slow_job("b")});
    CHECK(harness.store->commit(batch.view(), harness.handlers).error().code == ErrorCode::store_unavailable);
    harness.reopen();
    harness.check_sound();
    CHECK(harness.counts().pending + harness.counts().results == 1);
  }
}

TEST_CASE("every step is synced in page-cache mode too") {
  const auto faults = std::make_shared<Faults>();
  QueueHarness harness;
  harness.options.environment = faulty_environment(faults);
  harness.options.durability = Durability::page_cache;
  harness.reopen();
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.row("a", "slow")->durability == Durability::page_cache);
  std::uint64_t syncs = faults->calls(FaultAt::log_sync);
  const auto synced = [&] { return faults->calls(FaultAt::log_sync) == ++syncs; };
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(synced());
  CHECK(harness.give_back("a") == QueueSettled::waiting);
  CHECK(synced());
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(synced());
  CHECK(harness.settle("a", done(1)) == QueueSettled::committed);
  CHECK(synced());
  CHECK(harness.row("a", "slow")->durability == Durability::fsync);
}

// SCENE_STEP (receive, give-back, done, refused or unknown) of the only queued job in SCENE_DIRECTORY, killed at
// SCENE_KILL.
TEST_CASE("scene: take a step of a queued job and die" * doctest::skip()) {
  const std::string step = scene_parameter("SCENE_STEP");
  if (step.empty()) return;
  auto kill_switch = KillSwitch::parse(scene_parameter("SCENE_KILL"));
  REQUIRE(kill_switch.has_value());
  QueueHarness harness(scene_parameter("SCENE_DIRECTORY"));
  harness.options.kill_switch = &*kill_switch;
  harness.reopen();
  if (step == "receive") static_cast<void>(harness.receive("a"));
  if (step == "give-back") static_cast<void>(harness.give_back("a"));
  if (step == "done") static_cast<void>(harness.settle("a", done(7)));
  if (step == "refused") static_cast<void>(harness.settle("a", refused("no")));
  if (step == "unknown") static_cast<void>(harness.settle("a", unknown("?")));
}

TEST_CASE("a step that dies before its commit did nothing and after it did everything") {
  for (const std::string step : {"receive", "give-back", "done", "refused", "unknown"}) {
    for (const std::string when : {"before", "after"}) {
      CAPTURE(step);
      CAPTURE(when);
      QueueHarness harness;
      CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
      if (step != "receive") CHECK(harness.receive("a").answer == Answer::job);
      const FencingToken token = harness.token("a");
      harness.close();
      const ProcessEnd end = play("scene: take a step of a queued job and die",
                                  {{"SCENE_STEP", step},
                                   {"SCENE_KILL", "queue." + when + (step == "receive" ? "-receive:1" : "-settle:1")},
                                   {"SCENE_DIRECTORY", harness.directory.path()}});
      REQUIRE(end.is_kill());
      harness.open();
      harness.check_sound();
      const bool made = when == "after";
      const bool left = made && (step == "done" || step == "refused");
      CHECK(harness.counts().pending == (left ? 0U : 1U));
      CHECK(harness.counts().results == (made && step == "done" ? 1U : 0U));
      CHECK(harness.counts().dead_letters == (made && step == "refused" ? 1U : 0U));
      if (left) continue;
      const QueueRow row = harness.queued(key_of("a"));
      const bool received = step == "receive" ? made : !(made && step == "give-back");
      CHECK(row.receives == (received ? 1U : 0U));
      QueueState state = received ? QueueState::leased : QueueState::waiting;
      if (made && step == "unknown") state = QueueState::held;
      CHECK(row.state == state);
      // What was left undone can be done.
      if (row.state == QueueState::held) continue;
      CHECK(harness.receive("a").row.receives == (received ? 2U : 1U));
      CHECK(harness.settle_key(key_of("a"), token, done(1)) == QueueSettled::stale);
      CHECK(harness.settle("a", done(7)) == QueueSettled::committed);
      harness.check_sound();
    }
  }
}

TEST_CASE("an opening that accepts a loss counts the queue anew and stays above every token in it") {
  QueueHarness harness;
  CHECK(harness.commit({slow_job("a"), slow_job("b")}).size() == 2);
  for (int opening = 0; opening < 3; ++opening)
    harness.reopen();
  CHECK(harness.receive("a").answer == Answer::job);
  const FencingToken token = harness.token("a");
  harness.close();
  {
    RawDatabase raw(harness.directory.path());
    for (const auto &[name, value] : raw.rows("meta"))
      raw.erase("meta", name);
  }
  harness.options.accept_loss = true;
  harness.options.queue_jobs_max = 2;
  harness.open();
  CHECK(harness.boot_count() > token.boot);
  harness.options.accept_loss = false;
  harness.check_sound();
  CHECK(harness.commit_one(slow_job("c")).outcome == Outcome::busy);
  CHECK(harness.receive("a").answer == Answer::job);
  CHECK(harness.settle("a", done(1)) == QueueSettled::committed);
  harness.check_sound();
}

TEST_CASE("an opening that accepts a loss makes the rows of each queued job fit together again") {
  QueueHarness harness;
  const std::vector<Bytes> jobs{slow_job("whole"), slow_job("no row"), slow_job("no job"), slow_job("done"),
                                slow_job("refused")};
  CHECK(outcomes_of(harness.commit(jobs)) == Outcomes(5, Outcome::accepted));
  CHECK(harness.receive("done").answer == Answer::job);
  CHECK(harness.receive("refused").answer == Answer::job);
  Bytes old_row;
  encode_queued(harness.queued(key_of("done")), old_row);
  CHECK(harness.settle("done", done(1)) == QueueSettled::committed);
  CHECK(harness.settle("refused", refused("no")) == QueueSettled::failed);
  const auto before = harness.row("no row", "slow").value();
  const DeadLetterId id = harness.dead_letters().at(0).id;
  harness.close();
  {
    RawDatabase raw(harness.directory.path());
    raw.erase("operations", key_of("no row"));
    raw.erase("queue", key_of("no job"));
    raw.put("queue", key_of("done"), old_row);
    raw.erase("dead_letters", id.view());
  }
  harness.options.accept_loss = true;
  harness.open();
  harness.options.accept_loss = false;
  harness.check_sound();
  const auto after = harness.row("no row", "slow").value();
  CHECK(after.phase == Phase::pending);
  CHECK(after.digest == before.digest);
  CHECK(after.issued_at == before.issued_at);
  CHECK(harness.row("done", "slow")->result == integer_result(1));
  CHECK(!harness.row("no job", "slow"));
  CHECK(!harness.row("refused", "slow"));
  CHECK(harness.counts().pending == 2);
  harness.reopen();
  CHECK(outcomes_of(harness.commit(jobs)) ==
        Outcomes{Outcome::accepted, Outcome::accepted, Outcome::accepted, Outcome::duplicate, Outcome::accepted});
  CHECK(harness.receive("no row").answer == Answer::job);
  CHECK(harness.receive("no job").answer == Answer::job);
  harness.check_sound();
}
