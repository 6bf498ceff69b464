// The store's side of messages that results send on: that they are written with the result on each of its ways, how
// they leave, and what becomes of those that are refused at their destination. Not here: sending (unit/runner), and
// power loss.
#include <doctest/doctest.h>

#include <csignal>
#include <set>
#include <unistd.h>

#include "store/rows/records.hpp"
#include "support/copy.hpp"
#include "support/faulty_environment.hpp"
#include "support/raw_database.hpp"
#include "support/relay_harness.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

const Bytes split_key = key_of_operation("split", "a").bytes;

Job parsed(const Bytes &bytes) {
  Job job;
  REQUIRE(JobParser().parse(bytes, job).has_value());
  return job;
}

std::vector<Bytes> keys_of(const std::vector<RelayEntry> &entries) {
  std::vector<Bytes> keys;
  for (const RelayEntry &entry : entries)
    keys.push_back(entry.key);
  return keys;
}

// Settles the queued job `id` as done, with one message.
QueueSettled settle_with_message(RelayHarness &harness, std::string_view id) {
  QueueEnding ending = done(7);
  ending.messages = {message_to("next", 1)};
  return harness.settle(id, ending);
}

// The dead letter that the only row to `next` became, refused there as `outcome`.
DeadLetter buried_letter(RelayHarness &harness, Outcome outcome = Outcome::failed) {
  const auto rows = harness.waiting();
  REQUIRE(rows.size() == 1);
  CHECK(harness.bury(rows[0].key, outcome, "no such account") == RelayBuried::buried);
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == 1);
  return letters[0];
}

} // namespace

// --- With the result ------------------------------------------------------------------------------------------------

TEST_CASE("messages of an inline result are written with it as whole jobs and are there after a restart") {
  RelayHarness harness;
  harness.messages = {message_to("next", 1), message_to("other", 2), message_to("next", 3)};
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  CHECK(harness.observer.relayed_count == 1);
  Digester digester;
  for (const bool again : {false, true}) {
    if (again) harness.reopen();
    const auto rows = harness.waiting();
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].key == relay_key("next", split_key, 0));
    CHECK(rows[1].key == relay_key("next", split_key, 2));
    CHECK(rows[1].row.created_at == harness.clock.now);
    CHECK(rows[1].row.redrives == 0);
    const Job job = parsed(rows[1].row.job);
    CHECK(job.operation_id == relayed_operation_id(split_key, 2, digester));
    CHECK(job.type == "sum");
    CHECK(job.payload == parsed(job_bytes("x", {3})).payload);
    CHECK(harness.waiting("other").size() == 1);
    CHECK(harness.waiting("nex").empty());
    CHECK(harness.store->relay().destinations(10).value() == std::vector<std::string>{"next", "other"});
    CHECK(harness.store->relay().depth().rows == 3);
    CHECK(harness.counts().relayed == 3);
    CHECK(harness.store->verify()->relayed == 3);
    harness.check_sound();
  }
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::duplicate);
  CHECK(harness.counts().relayed == 3);
}

TEST_CASE("a batch of jobs with messages takes one commit and tells the observer once") {
  StoreCounters counters;
  RelayHarness harness;
  harness.options.counters = &counters;
  harness.reopen();
  CHECK(harness.commit({split_job("a"), split_job("b"), split_job("a"), job_bytes("c", {1})}).size() == 4);
  CHECK(counters.commits == 1);
  CHECK(counters.log_syncs == 1);
  CHECK(harness.observer.relayed_count == 1);
  CHECK(harness.waiting().size() == 2);
  CHECK(harness.commit_one(job_bytes("d", {1})).outcome == Outcome::stored);
  CHECK(harness.observer.relayed_count == 1);
  harness.check_sound();
}

TEST_CASE("a message has its parent's trace context on every way of a result") {
  RelayHarness harness;
  const auto traced = [](std::string_view type) {
    Bytes out;
    messagepack::Writer(out)
        .map(3)
        .string("operation_id")
        .string("a")
        .string("type")
        .string(type)
        .string("traceparent")
        .string("00-trace");
    return out;
  };
  CHECK(harness.commit({traced("split"), traced("slow")}).size() == 2);
  CHECK(harness.receive("a").answer == Received::Answer::job);
  CHECK(settle_with_message(harness, "a") == QueueSettled::committed);
  const auto rows = harness.waiting();
  REQUIRE(rows.size() == 2);
  for (const RelayEntry &entry : rows)
    CHECK(parsed(entry.row.job).traceparent == "00-trace");
}

TEST_CASE("messages of a queued job are written by the settlement that commits its result and by no other") {
  RelayHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Received::Answer::job);
  const FencingToken token = harness.token("a");
  QueueEnding ending = done(7);
  ending.messages = {message_to("next", 1), message_to("next", 2)};
  CHECK(harness.settle_key(key_of("a"), {.boot = token.boot, .count = token.count + 1}, ending) == QueueSettled::stale);
  CHECK(harness.waiting().empty());
  CHECK(harness.observer.relayed_count == 0);
  CHECK(harness.settle_key(key_of("a"), token, ending) == QueueSettled::committed);
  CHECK(harness.observer.relayed_count == 1);
  harness.reopen();
  REQUIRE(harness.waiting().size() == 2);
  CHECK(harness.waiting()[1].key == relay_key("next", key_of("a"), 1));
  CHECK(harness.row("a", "slow")->result == integer_result(7));
  harness.check_sound();
}

TEST_CASE("a queued result with a message that cannot be sent on is refused as usage and changes nothing") {
  RelayHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  CHECK(harness.receive("a").answer == Received::Answer::job);
  QueueEnding ending = done(7);
  ending.messages = {{.to = "next", .job = "no map"}};
  const auto settled = harness.store->queue().settle(key_of("a"), harness.token("a"), ending);
  REQUIRE(!settled);
  CHECK(settled.error().code == ErrorCode::usage);
  CHECK(settle_with_message(harness, "a") == QueueSettled::committed);
  harness.check_sound();
}

TEST_CASE("a redrive that stores a result writes its messages") {
  RelayHarness harness;
  harness.messages = {{.to = "", .job = message_bytes(1)}};
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::failed);
  harness.messages = {message_to("next", 1)};
  CHECK(harness.redrive(harness.dead_letters().at(0).id).settlement.outcome == Outcome::stored);
  CHECK(harness.observer.relayed_count == 1);
  CHECK(harness.waiting().size() == 1);
  CHECK(harness.dead_letters().empty());
  harness.check_sound();
  harness.reopen();
  CHECK(harness.store->relay().depth().rows == 1);
}

TEST_CASE("messages of a job that another batch commits first are written once and take room once") {
  RelayHarness harness;
  harness.options.relay_jobs_max = 2;
  harness.reopen();
  // Runs when its batch has looked every key up and not yet locked any.
  const auto meanwhile = [&](const HandlerCall &) -> HandlerResult {
    const Batch other({split_job("a")});
    const auto settled = harness.store->commit(other.view(), harness.handlers);
    CHECK(settled->at(0).outcome == Outcome::stored);
    return Done{integer_result(1)};
  };
  REQUIRE(harness.handlers.add_inline("meanwhile", meanwhile).has_value());
  CHECK(outcomes_of(
            harness.commit({split_job("a"), job_bytes({.operation_id = "m", .numbers = {}, .type = "meanwhile"})})) ==
        std::vector<Outcome>{Outcome::duplicate, Outcome::stored});
  CHECK(harness.waiting().size() == 1);
  CHECK(harness.commit_one(split_job("b")).outcome == Outcome::stored);
  CHECK(harness.commit_one(split_job("c")).outcome == Outcome::busy);
  harness.check_sound();
}

TEST_CASE("a commit that fails leaves neither the result nor its messages or both") {
  for (const FaultAt fault : {FaultAt::log_append, FaultAt::log_sync}) {
    const auto faults = std::make_shared<Faults>();
    RelayHarness harness;
    harness.options.environment = faulty_environment(faults);
    harness.reopen();
    faults->fail_from(fault, 1);
    const Batch batch({split_job("a")});
    CHECK(!harness.store->commit(batch.view(), harness.handlers));
    CHECK(harness.observer.relayed_count == 0);
    faults->clear();
    harness.reopen();
    CHECK(harness.waiting().size() == harness.counts().results);
    harness.check_sound();
  }
}

// --- The caps -------------------------------------------------------------------------------------------------------

TEST_CASE("a full relay answers busy on every way of a result with messages and a removed one makes room") {
  RelayHarness harness;
  harness.options.relay_jobs_max = 2;
  harness.reopen();
  harness.messages = {{.to = "", .job = message_bytes(1)}};
  CHECK(harness.commit_one(split_job("failed")).outcome == Outcome::failed);
  harness.messages = {message_to("next", 1), message_to("next", 2)};
  CHECK(outcomes_of(
            harness.commit({slow_job("a"), split_job("b"), split_job("c"), split_job("b"), job_bytes("d", {1})})) ==
        std::vector<Outcome>{Outcome::accepted, Outcome::stored, Outcome::busy, Outcome::duplicate, Outcome::stored});
  harness.reopen(); // the counters say as much
  const Settlement full = harness.commit_one(split_job("c"));
  CHECK(full.outcome == Outcome::busy);
  CHECK(full.detail.find("relay is at its cap") != std::string::npos);
  CHECK(!harness.row("c", "split"));
  CHECK(harness.receive("a").answer == Received::Answer::job);
  CHECK(settle_with_message(harness, "a") == QueueSettled::busy);
  const Redriven redriven = harness.redrive(harness.dead_letters().at(0).id);
  CHECK(redriven.settlement.outcome == Outcome::busy);
  CHECK(!redriven.removed);
  CHECK(harness.store->audit(10, 0)->empty());
  harness.check_sound();

  harness.remove({harness.waiting()[0].key});
  CHECK(settle_with_message(harness, "a") == QueueSettled::committed);
  CHECK(harness.commit_one(split_job("c")).outcome == Outcome::busy);
  harness.remove(keys_of(harness.waiting()));
  CHECK(harness.commit_one(split_job("c")).outcome == Outcome::stored);
  harness.check_sound();
}

TEST_CASE("the bytes of messages are held to their cap") {
  RelayHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  harness.options.relay_bytes_max = harness.store->relay().depth().bytes * 2;
  harness.reopen();
  CHECK(harness.commit_one(split_job("b")).outcome == Outcome::stored);
  CHECK(harness.commit_one(split_job("c")).outcome == Outcome::busy);
  CHECK(harness.commit_one(job_bytes("d", {1})).outcome == Outcome::stored);
  harness.remove({harness.waiting()[0].key});
  CHECK(harness.commit_one(split_job("c")).outcome == Outcome::stored);
}

// --- Reading and removing -------------------------------------------------------------------------------------------

TEST_CASE("pages go through the rows to one destination in the order of their keys") {
  RelayHarness harness;
  harness.messages = {message_to("b", 1), message_to("a", 2), message_to("b", 3), message_to("bb", 4)};
  for (const char *id : {"1", "2", "3"})
    CHECK(harness.commit_one(split_job(id)).outcome == Outcome::stored);
  for (const std::size_t size : {1U, 2U, 5U, 6U, 7U}) {
    std::vector<Bytes> seen;
    Bytes after;
    while (true) {
      const auto page = harness.store->relay().page("b", after, size).value();
      CHECK(page.entries.size() <= size);
      CHECK(page.damaged == 0);
      for (const RelayEntry &entry : page.entries)
        seen.push_back(entry.key);
      if (!page.next) break;
      after = *page.next;
    }
    CHECK(seen.size() == 6);
    CHECK(std::is_sorted(seen.begin(), seen.end()));
    CHECK(std::set<Bytes>(seen.begin(), seen.end()).size() == 6);
  }
  CHECK(harness.store->relay().destinations(10).value() == std::vector<std::string>{"a", "b", "bb"});
  CHECK(harness.store->relay().destinations(2).value().size() == 2);
}

TEST_CASE("a page holds no more bytes than one read may take") {
  RelayHarness harness;
  Bytes large;
  messagepack::Writer(large).map(1).string("p").string(std::string(60'000, 'x'));
  harness.messages = {{.to = "next", .job = large}};
  for (int job = 0; job < 40; ++job)
    CHECK(harness.commit_one(split_job(std::to_string(job))).outcome == Outcome::stored);
  const auto page = harness.store->relay().page("next", {}, 1000).value();
  CHECK(page.entries.size() == limits::relay_read_bytes / page.entries[0].row.job.size());
  REQUIRE(page.next);
  CHECK(page.entries.back().key == *page.next);
}

TEST_CASE("removed messages are gone for good and a removal of what is gone changes nothing") {
  StoreCounters counters;
  RelayHarness harness;
  harness.options.counters = &counters;
  harness.reopen();
  harness.messages = {message_to("next", 1), message_to("next", 2), message_to("other", 3)};
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  const auto keys = keys_of(harness.waiting());
  harness.remove(keys);
  CHECK(counters.commits == 2);
  harness.remove(keys);
  harness.remove({});
  harness.remove({"stranger"});
  CHECK(counters.commits == 2);
  for (const bool again : {false, true}) {
    if (again) harness.reopen();
    CHECK(harness.waiting().empty());
    CHECK(harness.waiting("other").size() == 1);
    CHECK(harness.store->relay().depth().rows == 1);
    harness.check_sound();
  }
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::duplicate); // and sends nothing on again
  CHECK(harness.waiting().empty());
}

TEST_CASE("after a removal that failed the store takes no more until it is opened again") {
  const auto faults = std::make_shared<Faults>();
  RelayHarness harness;
  harness.options.environment = faulty_environment(faults);
  harness.reopen();
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  const auto keys = keys_of(harness.waiting());
  faults->fail_from(FaultAt::log_sync, 1);
  const auto removed = harness.store->relay().remove(keys);
  REQUIRE(!removed);
  CHECK(removed.error().code == ErrorCode::store_unavailable);
  faults->clear();
  CHECK(!harness.store->relay().remove(keys));
  CHECK(!harness.store->relay().bury(keys[0], Outcome::failed, "no"));
  harness.reopen();
  harness.remove(keys);
  CHECK(harness.waiting().empty());
  harness.check_sound();
}

TEST_CASE("a removal does not let the mark lead and an opening after it is not refused") {
  RelayHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  StoreCounters counters;
  harness.options.counters = &counters;
  harness.reopen();
  harness.remove(keys_of(harness.waiting()));
  CHECK(counters.log_syncs == 1); // what is visible is durable: every writer is synced
  harness.options.durability = Durability::page_cache;
  CHECK(harness.reopen().relay().depth().rows == 0);
}

// --- Refused at their destination -----------------------------------------------------------------------------------

TEST_CASE("a message that is refused for good is a dead letter here that names where it went and what was said") {
  for (const Outcome outcome : {Outcome::conflict, Outcome::invalid, Outcome::failed, Outcome::expired}) {
    RelayHarness harness;
    CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
    const RelayEntry sent = harness.waiting().at(0);
    harness.clock.now += std::chrono::seconds(5);
    for (const bool again : {false, true}) {
      if (again) harness.reopen();
      const DeadLetter letter = again ? harness.dead_letters().at(0) : buried_letter(harness, outcome);
      CHECK(letter.reason == outcome);
      CHECK(letter.detail == "sent on to next, which said: no such account");
      CHECK(letter.bytes == sent.row.job);
      CHECK(letter.operation_id == parsed(sent.row.job).operation_id);
      CHECK(letter.type == "sum");
      CHECK(letter.relay_key == sent.key);
      CHECK(letter.deliveries == 1);
      CHECK(letter.redrives == 0);
      CHECK(letter.first_at == sent.row.created_at);
      CHECK(letter.issued_at == sent.row.created_at);
      CHECK(letter.last_at == harness.clock.now);
      CHECK(!letter.stored_digest);
      CHECK(harness.waiting().empty());
      CHECK(harness.store->relay().depth().rows == 0);
      harness.check_sound();
    }
    CHECK(harness.bury(sent.key, outcome, "again") == RelayBuried::gone);
  }
}

TEST_CASE("a detail of any bytes and length is kept as text that fits") {
  RelayHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  CHECK(harness.bury(harness.waiting()[0].key, Outcome::failed, "\xFF" + std::string(5000, 'd')) ==
        RelayBuried::buried);
  const std::string detail = harness.dead_letters().at(0).detail;
  CHECK(detail.size() <= limits::detail_bytes_max);
  CHECK(detail.starts_with("sent on to next, which said: \xEF\xBF\xBD"));
  harness.check_sound();
}

TEST_CASE("a redriven message goes back to the relay and is not handled here as if it had been delivered") {
  RelayHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  const RelayEntry sent = harness.waiting().at(0);
  for (std::uint64_t redrives = 1; redrives <= 3; ++redrives) {
    const DeadLetter letter = buried_letter(harness);
    CHECK(letter.redrives == redrives - 1);
    const unsigned told = harness.observer.relayed_count;
    const Redriven redriven = harness.redrive(letter.id);
    CHECK(redriven.settlement.outcome == Outcome::accepted);
    CHECK(redriven.removed);
    CHECK(redriven.id == letter.id);
    CHECK(harness.observer.relayed_count == told + 1);
    CHECK(harness.dead_letters().empty());
    CHECK(harness.counts().results == 1); // the parent's alone
    if (redrives == 2) harness.reopen();
    const auto rows = harness.waiting();
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].key == sent.key);
    CHECK(rows[0].row.job == sent.row.job);
    CHECK(rows[0].row.created_at == sent.row.created_at);
    CHECK(rows[0].row.redrives == redrives);
    harness.check_sound();
  }
  const auto audit = harness.store->audit(10, 0).value();
  REQUIRE(audit.size() == 3);
  CHECK(audit[0].action == "redrive");
  CHECK(audit[0].outcome == "accepted");
}

TEST_CASE("a redrive of a message is busy where the relay is full") {
  RelayHarness harness;
  harness.options.relay_jobs_max = 1;
  harness.reopen();
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  const DeadLetter letter = buried_letter(harness);
  CHECK(harness.commit_one(split_job("b")).outcome == Outcome::stored);
  CHECK(harness.redrive(letter.id).settlement.outcome == Outcome::busy);
  CHECK(harness.dead_letters().size() == 1);
  harness.remove(keys_of(harness.waiting()));
  CHECK(harness.redrive(letter.id).removed);
  harness.check_sound();
}

TEST_CASE("a purged message is gone and its parent's key stays") {
  RelayHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  REQUIRE(harness.store->purge(buried_letter(harness).id, kim).has_value());
  CHECK(harness.dead_letters().empty());
  CHECK(harness.waiting().empty());
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::duplicate);
  harness.check_sound();
}

TEST_CASE("dead letters of a message and of a job here with the same key and digest and reason are two") {
  RelayHarness harness;
  CHECK(harness.commit_one(slow_job("a")).outcome == Outcome::accepted);
  Bytes message; // the very job that fails here too, as far as key and digest go
  messagepack::Writer(message)
      .map(3)
      .string("numbers")
      .array(1)
      .integer(1)
      .string("type")
      .string("slow")
      .string("effect_key")
      .string("e");
  harness.messages = {{.to = "next", .job = message}, {.to = "other", .job = message}};
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  CHECK(harness.commit_one(slow_job("own", 1, "e")).outcome == Outcome::accepted);
  const Bytes key = key_of_effect("e").bytes;
  CHECK(harness.receive_key(key, harness.next_token()).answer == Received::Answer::job);
  CHECK(harness.settle_key(key, harness.token_of(key), refused("no")) == QueueSettled::failed);
  for (const char *to : {"next", "other"})
    CHECK(harness.bury(harness.waiting(to).at(0).key, Outcome::failed, "no") == RelayBuried::buried);
  CHECK(harness.dead_letters().size() == 3);
  for (const DeadLetter &letter : harness.dead_letters()) {
    if (!letter.relay_key.empty()) REQUIRE(harness.store->purge(letter.id, kim).has_value());
  }
  CHECK(harness.store->get(key_of_effect("e")).value()->phase == Phase::failed); // not freed by another's purge
  harness.check_sound();
}

TEST_CASE("at the cap of dead letters a refused message stays in the relay") {
  RelayHarness harness;
  harness.options.dead_letters_max = 1;
  harness.reopen();
  CHECK(harness.commit({split_job("a"), "garbage"}).size() == 2);
  const Bytes key = harness.waiting().at(0).key;
  CHECK(harness.bury(key, Outcome::failed, "no") == RelayBuried::busy);
  CHECK(harness.waiting().size() == 1);
  harness.check_sound();
  REQUIRE(harness.store->purge(harness.dead_letters().at(0).id, kim).has_value());
  CHECK(harness.bury(key, Outcome::failed, "no") == RelayBuried::buried);
  harness.check_sound();
}

// --- Crashes --------------------------------------------------------------------------------------------------------

TEST_CASE("killed around a removal or a burial the message is in one place") {
  for (const KillPoint point : {KillPoint::relay_before_removal, KillPoint::relay_after_removal}) {
    for (const bool buries : {false, true}) {
      CAPTURE(name_of(point));
      CAPTURE(buries);
      RelayHarness harness;
      CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
      const auto keys = keys_of(harness.waiting());
      harness.close();
      const ProcessEnd end = do_in_copy([&] {
        KillSwitch kill_switch(point, 1);
        harness.options.kill_switch = &kill_switch;
        harness.open();
        if (buries) {
          static_cast<void>(harness.store->relay().bury(keys[0], Outcome::failed, "no"));
        } else {
          static_cast<void>(harness.store->relay().remove(keys));
        }
      });
      REQUIRE(end.is_kill());
      harness.open();
      const bool left = point == KillPoint::relay_after_removal;
      CHECK(harness.waiting().size() == (left ? 0 : 1));
      CHECK(harness.dead_letters().size() == (left && buries ? 1 : 0));
      harness.check_sound();
    }
  }
}

// --- Damage, loss and older databases -------------------------------------------------------------------------------

TEST_CASE("rows of the relay that do not fit are told by verify") {
  const auto after = [](const std::function<void(RawDatabase &, const RelayEntry &)> &harm) {
    RelayHarness harness;
    CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
    const RelayEntry entry = harness.waiting().at(0);
    harness.close();
    {
      RawDatabase raw(harness.directory.path());
      harm(raw, entry);
    }
    harness.open();
    const Verification found = harness.store->verify().value();
    return found.problems == 0 ? std::string("nothing")
                               : found.first_problems[0].where + ": " + found.first_problems[0].what;
  };
  const auto value_of = [](const RelayRow &row) {
    Bytes value;
    encode_relayed(row, value);
    return value;
  };
  CHECK(after([](RawDatabase &, const RelayEntry &) {}) == "nothing");
  CHECK(after([](RawDatabase &raw, const RelayEntry &entry) { raw.put("relay", entry.key, "garbage"); }) ==
        "relay: the row is damaged");
  CHECK(after([](RawDatabase &raw, const RelayEntry &entry) { raw.erase("relay", entry.key); }) ==
        "meta: the counters say 1 messages to be sent on, and there are 0");
  CHECK(after([](RawDatabase &raw, const RelayEntry &) { raw.erase("operations", split_key); }) ==
        "relay: the job whose result it is is not committed");
  CHECK(after([&](RawDatabase &raw, const RelayEntry &entry) {
          raw.put("relay", relay_key("next", split_key, 1), value_of(entry.row)); // the job of another index
        }) == "relay: its bytes are no job, or not that of its key");
  CHECK(after([&](RawDatabase &raw, const RelayEntry &entry) {
          raw.put("relay", entry.key, value_of({.job = "no job", .created_at = {}}));
        }) == "relay: its bytes are no job, or not that of its key");
  CHECK(after([&](RawDatabase &raw, const RelayEntry &entry) { raw.put("relay", "x", value_of(entry.row)); }) ==
        "relay: the row lies under a key that is none");
}

TEST_CASE("a dead letter of a message under another id or with another job is told by verify") {
  const auto after = [](const std::function<void(DeadLetter &)> &harm) {
    RelayHarness harness;
    CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
    DeadLetter letter = buried_letter(harness);
    const Bytes id(letter.id.view());
    harness.close();
    harm(letter);
    Bytes value;
    encode_dead_letter(letter, value);
    RawDatabase(harness.directory.path()).put("dead_letters", id, value);
    harness.open();
    return harness.store->verify()->first_problems.at(0).what;
  };
  CHECK(after([](DeadLetter &letter) { letter.relay_key = relay_key("other", split_key, 0); }) ==
        "the row lies under another id than that of its message");
  CHECK(after([](DeadLetter &letter) { letter.relay_key.clear(); }) ==
        "the row lies under another id than that of its key, digest and reason");
  CHECK(after([](DeadLetter &letter) { letter.bytes = job_bytes("x", {1}); }) ==
        "its digest or its ids are not those of its bytes");
}

TEST_CASE("damaged rows are passed over by a page and named in its count") {
  RelayHarness harness;
  harness.messages = {message_to("next", 1), message_to("next", 2)};
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  const Bytes key = harness.waiting().at(0).key;
  harness.close();
  RawDatabase(harness.directory.path()).put("relay", key, "garbage");
  harness.open();
  const auto page = harness.store->relay().page("next", {}, 10).value();
  CHECK(page.damaged == 1);
  CHECK(page.entries.size() == 1);
  CHECK(harness.bury(key, Outcome::failed, "no") == RelayBuried::gone);
  CHECK(harness.counts().relayed == 2);
}

TEST_CASE("an opening that accepts a loss drops messages whose parent is lost and counts the others anew") {
  RelayHarness harness;
  CHECK(harness.commit({split_job("a"), split_job("b")}).size() == 2);
  harness.close();
  {
    RawDatabase raw(harness.directory.path());
    raw.erase("operations", split_key);
    raw.erase("meta", "sums/0");
  }
  harness.options.accept_loss = true;
  harness.open();
  harness.options.accept_loss = false;
  CHECK(harness.waiting().size() == 1);
  CHECK(harness.store->relay().depth().rows == 1);
  harness.check_sound();
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  CHECK(harness.waiting().size() == 2);
  harness.check_sound();
}

TEST_CASE("a message whose parent was lost and done once more while it is a dead letter stays one message") {
  RelayHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  const DeadLetter letter = buried_letter(harness);
  harness.close();
  {
    RawDatabase raw(harness.directory.path());
    raw.erase("operations", split_key);
    raw.erase("meta", "sums/0");
  }
  harness.options.accept_loss = true;
  harness.open();
  harness.options.accept_loss = false;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  SUBCASE("refused again") {
    CHECK(buried_letter(harness).deliveries == 2);
  }
  SUBCASE("redriven") {
    CHECK(harness.redrive(letter.id).removed);
    CHECK(harness.waiting().size() == 1);
    CHECK(harness.dead_letters().empty());
  }
  harness.check_sound();
}

TEST_CASE("a store that is only read shows messages and takes nothing") {
  RelayHarness harness;
  CHECK(harness.commit_one(split_job("a")).outcome == Outcome::stored);
  harness.options.read_only = true;
  harness.reopen();
  CHECK(harness.waiting().size() == 1);
  CHECK(harness.counts().relayed == 1);
  const auto removed = harness.store->relay().remove(keys_of(harness.waiting()));
  REQUIRE(!removed);
  CHECK(removed.error().code == ErrorCode::usage);
}
