// Redrive, purge and audit on a real store: every verdict, what is written, what a crash leaves, and that the counters
// equal a scan after all of it. Not here: who may order a change, which is the worker's and the command's business.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "store/rows/records.hpp"
#include "support/faulty_environment.hpp"
#include "support/raw_sums.hpp"
#include "support/scene.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A job whose type has no handler yet, so that it is dead-lettered as invalid, until `later` gives it one.
Bytes later_job(std::string_view operation_id = "demo-1", std::int64_t number = 1) {
  return job_bytes({.operation_id = operation_id, .numbers = {number}, .type = "later"});
}

Handlers later(HandlerResult result) {
  Handlers handlers = built_in_handlers();
  const auto added = handlers.add_inline("later", [result = std::move(result)](const HandlerCall &) { return result; });
  REQUIRE(added.has_value());
  return handlers;
}

Handlers later_done() {
  return later(Done{.result = integer_result(7)});
}

struct ChangeHarness : StoreHarness {
  using StoreHarness::StoreHarness;

  Redriven redrive(const DeadLetterId &id) {
    auto redriven = store->redrive(id, handlers, kim);
    if (!redriven) throw std::runtime_error(describe(redriven.error()));
    return std::move(*redriven);
  }
  void purge(const DeadLetterId &id) {
    const auto purged = store->purge(id, kim);
    if (!purged) throw std::runtime_error(describe(purged.error()));
  }
  std::vector<AuditRow> audit(std::size_t rows = 1000, std::uint64_t after = 0) {
    auto got = store->audit(rows, after);
    if (!got) throw std::runtime_error(describe(got.error()));
    return std::move(*got);
  }
  DeadLetter only_letter() {
    const auto letters = dead_letters();
    REQUIRE(letters.size() == 1);
    return letters[0];
  }

  // Closes the store, and checks that its counters are what a scan of its rows counts.
  void check_counters_by_scan() {
    close();
    const RawDatabase raw(directory.path());
    const engine::Counters sums = sums_of(raw);
    std::int64_t scanned_bytes = 0;
    const auto rows = raw.rows("dead_letters");
    store::RecordDecoder decoder;
    for (const auto &[id, value] : rows)
      scanned_bytes += static_cast<std::int64_t>(decoder.dead_letter({}, value).value().bytes.size());
    CHECK(sums[engine::Counter::results] == static_cast<std::int64_t>(raw.rows("operations").size()));
    CHECK(sums[engine::Counter::dead_letters] == static_cast<std::int64_t>(rows.size()));
    CHECK(sums[engine::Counter::dead_letter_bytes] == scanned_bytes);
  }
};

} // namespace

// --- Redrive: each verdict -----------------------------------------------------------------------------------------

TEST_CASE("a redriven job that is done now is stored with its first ids and times and its dead letter is gone") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit_one(later_job()).outcome == Outcome::invalid);
  const DeadLetter letter = harness.only_letter();
  harness.handlers = later_done();
  harness.clock.now += std::chrono::hours(1);

  const Redriven redriven = harness.redrive(letter.id);
  CHECK(redriven.settlement.outcome == Outcome::stored);
  CHECK(redriven.settlement.result == integer_result(7));
  CHECK(redriven.removed);
  CHECK(harness.dead_letters().empty());
  const auto row = harness.row("demo-1", "later");
  REQUIRE(row.has_value());
  CHECK(row->result == integer_result(7));
  CHECK(row->operation_id == "demo-1");
  CHECK(row->issued_at == letter.issued_at);
  CHECK(row->committed_at == harness.clock.now);
  CHECK(row->digest == letter.offered_digest);
  CHECK(harness.commit_one(later_job()).outcome == Outcome::duplicate);

  const auto audit = harness.audit();
  REQUIRE(audit.size() == 1);
  CHECK(audit[0].number == 1);
  CHECK(audit[0].at == harness.clock.now);
  CHECK(audit[0].action == "redrive");
  CHECK(audit[0].dead_letter == letter.id);
  CHECK(audit[0].outcome == "stored");
  CHECK(audit[0].by == "kim");
  CHECK(audit[0].why == "INC-7");
  harness.check_counters_by_scan();
}

TEST_CASE("a redriven job whose result is there already is a duplicate and its dead letter is gone") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit_one(later_job()).outcome == Outcome::invalid);
  const DeadLetterId id = harness.only_letter().id;
  harness.handlers = later_done();
  CHECK(harness.commit_one(later_job()).outcome == Outcome::stored);
  const auto before = harness.row("demo-1", "later");
  harness.clock.now += std::chrono::hours(1);
  const Redriven redriven = harness.redrive(id);
  CHECK(redriven.settlement.outcome == Outcome::duplicate);
  CHECK(redriven.settlement.result == integer_result(7));
  CHECK(redriven.removed);
  CHECK(harness.dead_letters().empty());
  CHECK(harness.row("demo-1", "later")->committed_at == before->committed_at);
  CHECK(harness.audit().at(0).outcome == "duplicate");
  harness.check_counters_by_scan();
}

TEST_CASE("a redriven job with the same verdict stays where it is with its redrives raised") {
  struct Case {
    const char *what;
    Bytes job;
    Outcome outcome;
  };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Case &one :
       {Case{"a conflict", job_bytes("demo-1", {9}), Outcome::conflict}, Case{"no job", "not-json", Outcome::invalid},
        Case{"no handler", later_job(), Outcome::invalid},
        Case{"an overflow", job_bytes("big", {most, 1}), Outcome::failed}}) {
    CAPTURE(one.what);
    ChangeHarness harness;
    harness.open();
    CHECK(harness.commit_one(job_bytes("demo-1", {1})).outcome == Outcome::stored);
    CHECK(harness.commit(std::vector<Bytes>(3, one.job)).at(0).outcome == one.outcome);
    const DeadLetter before = harness.only_letter();
    harness.clock.now += std::chrono::hours(1);
    for (std::uint64_t redrives = 1; redrives <= 2; ++redrives) {
      const Redriven redriven = harness.redrive(before.id);
      CHECK(redriven.settlement.outcome == one.outcome);
      CHECK(redriven.settlement.detail == before.detail);
      CHECK(!redriven.removed);
      CHECK(redriven.id == before.id);
      const DeadLetter after = harness.only_letter();
      CHECK(after.redrives == redrives);
      CHECK(after.deliveries == 3);
      CHECK(after.bytes == before.bytes);
      CHECK(after.detail == before.detail);
      CHECK(after.sender == before.sender);
      CHECK(after.issued_at == before.issued_at);
      CHECK(after.last_at == before.last_at);
      CHECK(after.stored_digest == before.stored_digest);
      CHECK(after.offered_digest == before.offered_digest);
    }
    CHECK(harness.row("demo-1")->result == integer_result(1));
    CHECK(harness.audit().size() == 2);
    harness.check_counters_by_scan();
  }
}

TEST_CASE("bytes that were refused for the message around them keep what was said of it") {
  ChangeHarness harness;
  harness.open();
  Batch batch;
  batch.add("not-json").defect = "message_malformed";
  CHECK(harness.commit(batch).at(0).detail == "message_malformed");
  CHECK(harness.redrive(harness.only_letter().id).settlement.detail == "message_malformed");
  CHECK(harness.only_letter().detail == "message_malformed");
}

TEST_CASE("a redriven job that fails for another reason moves to that reason's id with its counts") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit(std::vector<Bytes>(4, later_job())).size() == 4);
  const DeadLetter before = harness.only_letter();
  harness.handlers = later(Failed{.detail = "too late"});
  const Redriven redriven = harness.redrive(before.id);
  CHECK(redriven.settlement.outcome == Outcome::failed);
  CHECK(!redriven.removed);
  CHECK(redriven.id != before.id);
  const DeadLetter after = harness.only_letter();
  CHECK(after.id == redriven.id);
  CHECK(after.reason == Outcome::failed);
  CHECK(after.detail == "too late");
  CHECK(after.bytes == before.bytes);
  CHECK(after.deliveries == 4);
  CHECK(after.redrives == 1);
  CHECK(after.first_at == before.first_at);
  // The next delivery finds it there.
  CHECK(harness.commit_one(later_job()).outcome == Outcome::failed);
  CHECK(harness.only_letter().deliveries == 5);
  harness.check_counters_by_scan();
}

TEST_CASE("a redriven job that meets another result becomes a conflict with both digests") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit_one(later_job("demo-1", 1)).outcome == Outcome::invalid);
  const DeadLetter before = harness.only_letter();
  harness.handlers = later_done();
  CHECK(harness.commit_one(later_job("demo-1", 2)).outcome == Outcome::stored);
  CHECK(harness.redrive(before.id).settlement.outcome == Outcome::conflict);
  const DeadLetter after = harness.only_letter();
  CHECK(after.reason == Outcome::conflict);
  CHECK(after.stored_digest == harness.row("demo-1", "later")->digest);
  CHECK(after.offered_digest == before.offered_digest);
  harness.check_counters_by_scan();
}

TEST_CASE("a redriven job that moves onto its own later dead letter becomes one with it") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit(std::vector<Bytes>(2, later_job())).size() == 2);
  const DeadLetterId first = harness.only_letter().id;
  const WallTime first_at = harness.clock.now;
  harness.clock.now += std::chrono::hours(1);
  harness.handlers = later(Failed{.detail = "too late"});
  CHECK(harness.commit(std::vector<Bytes>(3, later_job())).size() == 3);
  CHECK(harness.counts().dead_letters == 2);
  const Redriven redriven = harness.redrive(first);
  const DeadLetter after = harness.only_letter();
  CHECK(after.id == redriven.id);
  CHECK(after.deliveries == 5);
  CHECK(after.redrives == 1);
  CHECK(after.first_at == first_at);
  CHECK(after.last_at == harness.clock.now);
  harness.check_counters_by_scan();
}

TEST_CASE("a redrive that meets a damaged row is busy and writes nothing") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit_one(later_job()).outcome == Outcome::invalid);
  const DeadLetter before = harness.only_letter();
  harness.close();
  RawDatabase(harness.directory.path()).put("operations", key_of_operation("later", "demo-1").bytes, "garbage");
  harness.open();
  harness.handlers = later_done();
  const Redriven redriven = harness.redrive(before.id);
  CHECK(redriven.settlement.outcome == Outcome::busy);
  CHECK(!redriven.removed);
  CHECK(harness.only_letter().redrives == 0);
  CHECK(harness.audit().empty());
}

// --- Purge, errors, audit ------------------------------------------------------------------------------------------

TEST_CASE("a purged dead letter is gone and its next delivery makes a new one") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit(std::vector<Bytes>(5, "not-json")).size() == 5);
  const DeadLetterId id = harness.only_letter().id;
  harness.purge(id);
  CHECK(harness.dead_letters().empty());
  harness.reopen();
  CHECK(harness.dead_letters().empty());
  const auto audit = harness.audit();
  REQUIRE(audit.size() == 1);
  CHECK(audit[0].action == "purge");
  CHECK(audit[0].dead_letter == id);
  CHECK(audit[0].outcome.empty());
  CHECK(harness.commit_one("not-json").outcome == Outcome::invalid);
  CHECK(harness.only_letter().deliveries == 1);
  harness.check_counters_by_scan();
}

TEST_CASE("a damaged dead letter cannot be redriven but it can be purged") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit_one("not-json").outcome == Outcome::invalid);
  const DeadLetterId id = harness.only_letter().id;
  harness.close();
  RawDatabase(harness.directory.path()).put("dead_letters", id.view(), "garbage");
  harness.open();
  const auto redriven = harness.store->redrive(id, harness.handlers, kim);
  REQUIRE(!redriven.has_value());
  CHECK(redriven.error().code == ErrorCode::corrupt);
  harness.purge(id);
  CHECK(harness.counts().dead_letters == 0);
  CHECK(harness.commit_one("not-json").outcome == Outcome::invalid); // the store goes on
}

TEST_CASE("a change of a dead letter that is not there is not found and leaves no trace") {
  ChangeHarness harness;
  harness.open();
  const auto redriven = harness.store->redrive({}, harness.handlers, kim);
  REQUIRE(!redriven.has_value());
  CHECK(redriven.error().code == ErrorCode::not_found);
  const auto purged = harness.store->purge({}, kim);
  REQUIRE(!purged.has_value());
  CHECK(purged.error().code == ErrorCode::not_found);
  CHECK(harness.audit().empty());
  CHECK(harness.commit_one("not-json").outcome == Outcome::invalid);
}

TEST_CASE("a change needs to know who and why") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit_one("not-json").outcome == Outcome::invalid);
  const DeadLetterId id = harness.only_letter().id;
  for (const Operator &who : {Operator{"", "why"}, Operator{"kim", ""}, Operator{std::string(256, 'k'), "why"},
                              Operator{"kim", std::string(1025, 'w')}, Operator{"\xFF", "why"}}) {
    CAPTURE(who.by);
    const auto redriven = harness.store->redrive(id, harness.handlers, who);
    REQUIRE(!redriven.has_value());
    CHECK(redriven.error().code == ErrorCode::usage);
    const auto purged = harness.store->purge(id, who);
    REQUIRE(!purged.has_value());
    CHECK(purged.error().code == ErrorCode::usage);
  }
  CHECK(harness.only_letter().redrives == 0);
  CHECK(harness.audit().empty());
  CHECK(harness.store->purge(id, {std::string(255, 'k'), std::string(1024, 'w')}).has_value());
  CHECK(harness.audit().at(0).why == std::string(1024, 'w'));
}

TEST_CASE("a store that was opened read-only refuses changes and shows the audit") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit_one("bad 1").outcome == Outcome::invalid);
  CHECK(harness.commit_one("bad 2").outcome == Outcome::invalid);
  harness.purge(harness.dead_letters().at(0).id);
  harness.options.read_only = true;
  harness.reopen();
  const DeadLetterId id = harness.only_letter().id;
  const auto redriven = harness.store->redrive(id, harness.handlers, kim);
  REQUIRE(!redriven.has_value());
  CHECK(redriven.error().code == ErrorCode::usage);
  const auto purged = harness.store->purge(id, kim);
  REQUIRE(!purged.has_value());
  CHECK(purged.error().code == ErrorCode::usage);
  CHECK(harness.audit().size() == 1);
}

TEST_CASE("the audit keeps the newest changes in their order through reopenings") {
  ChangeHarness harness;
  harness.options.audit_rows_max = 5;
  harness.open();
  for (int number = 1; number <= 12; ++number) {
    CHECK(harness.commit_one("bad " + std::to_string(number)).outcome == Outcome::invalid);
    harness.purge(harness.only_letter().id);
    if (number % 4 == 0) harness.reopen();
  }
  const auto all = harness.audit();
  REQUIRE(all.size() == 5);
  for (std::size_t at = 0; at < all.size(); ++at)
    CHECK(all[at].number == 8 + at);
  CHECK(harness.audit(2, 9).at(0).number == 10);
  CHECK(harness.audit(2, 9).size() == 2);
  CHECK(harness.audit(10, 12).empty());
  CHECK(harness.audit(10, UINT64_MAX).empty());
  harness.check_counters_by_scan();
}

// --- Caps ----------------------------------------------------------------------------------------------------------

TEST_CASE("the bytes of dead letters are held to their cap and a purge makes room") {
  ChangeHarness harness;
  harness.options.dead_letter_bytes_max = 25;
  harness.open();
  CHECK(harness.commit_one(Bytes(10, 'a')).outcome == Outcome::invalid);
  CHECK(harness.commit_one(Bytes(10, 'b')).outcome == Outcome::invalid);
  CHECK(harness.commit_one(Bytes(6, 'c')).outcome == Outcome::busy);
  CHECK(harness.commit_one(Bytes(10, 'a')).outcome == Outcome::invalid); // a known one takes no room
  CHECK(harness.commit_one(Bytes(5, 'd')).outcome == Outcome::invalid);
  harness.reopen();
  CHECK(harness.commit_one("e").outcome == Outcome::busy);
  harness.purge(harness.dead_letters().at(0).id);
  CHECK(harness.commit_one("e").outcome == Outcome::invalid);
  harness.check_counters_by_scan();
}

TEST_CASE("a redrive makes room under the cap of rows") {
  ChangeHarness harness;
  harness.options.dead_letters_max = 1;
  harness.open();
  CHECK(harness.commit_one(later_job()).outcome == Outcome::invalid);
  CHECK(harness.commit_one("bad").outcome == Outcome::busy);
  harness.handlers = later_done();
  CHECK(harness.redrive(harness.only_letter().id).removed);
  CHECK(harness.commit_one("bad").outcome == Outcome::invalid);
  CHECK(harness.commit_one("bad 2").outcome == Outcome::busy);
  harness.reopen();
  CHECK(harness.commit_one("bad 2").outcome == Outcome::busy);
  harness.check_counters_by_scan();
}

TEST_CASE("a database in which nobody counted bytes has them counted when it is opened") {
  ChangeHarness harness;
  harness.open();
  CHECK(harness.commit_one(Bytes(10, 'a')).outcome == Outcome::invalid);
  harness.close();
  {
    RawDatabase raw(harness.directory.path());
    raw.erase("meta", "letter-bytes/0");
    raw.erase("meta", "changes");
  }
  harness.options.dead_letter_bytes_max = 12;
  harness.open();
  CHECK(harness.commit_one("bad").outcome == Outcome::busy);
  CHECK(harness.commit_one("b").outcome == Outcome::invalid);
  harness.check_counters_by_scan();
}

// --- Lists ---------------------------------------------------------------------------------------------------------

TEST_CASE("dead letters are found by reason and type page by page") {
  ChangeHarness harness;
  harness.open();
  std::vector<Bytes> jobs;
  for (int number = 0; number < 20; ++number) {
    jobs.push_back(later_job("later-" + std::to_string(number)));
    jobs.push_back(job_bytes("big-" + std::to_string(number), {INT64_MAX, 1}));
    jobs.push_back("bad " + std::to_string(number));
  }
  CHECK(harness.commit(jobs).size() == 60);
  const auto count = [&](const DeadLetterFilter &filter) {
    std::size_t found = 0;
    std::optional<DeadLetterId> after;
    for (int pages = 0; pages < 100; ++pages) {
      const auto page = harness.store->find_dead_letters(7, after, filter);
      REQUIRE(page.has_value());
      for (const DeadLetter &letter : page->letters) {
        CHECK((!filter.reason || letter.reason == *filter.reason));
        CHECK((filter.type.empty() || letter.type == filter.type));
      }
      found += page->letters.size();
      if (!page->next) return found;
      after = page->next;
    }
    return std::size_t{0};
  };
  CHECK(count({}) == 60);
  CHECK(count({.reason = Outcome::invalid, .type = {}}) == 40);
  CHECK(count({.reason = Outcome::failed, .type = {}}) == 20);
  CHECK(count({.reason = Outcome::conflict, .type = {}}) == 0);
  CHECK(count({.reason = {}, .type = "later"}) == 20);
  CHECK(count({.reason = Outcome::invalid, .type = "sum"}) == 0);
}

// --- Crashes, failures, races --------------------------------------------------------------------------------------

// SCENE_CHANGE (redrive or purge) of the only dead letter in SCENE_DIRECTORY, killed at SCENE_KILL.
TEST_CASE("scene: change a dead letter and die" * doctest::skip()) {
  if (scene_parameter("SCENE_CHANGE").empty()) return;
  auto kill_switch = KillSwitch::parse(scene_parameter("SCENE_KILL"));
  REQUIRE(kill_switch.has_value());
  ChangeHarness harness(scene_parameter("SCENE_DIRECTORY"));
  harness.options.kill_switch = &*kill_switch;
  harness.handlers = later_done();
  harness.open();
  const DeadLetterId id = harness.only_letter().id;
  if (scene_parameter("SCENE_CHANGE") == "redrive") {
    static_cast<void>(harness.redrive(id));
  } else {
    harness.purge(id);
  }
}

TEST_CASE("a change that dies before its commit did nothing and after it did everything") {
  for (const std::string change : {"redrive", "purge"}) {
    for (const std::string when : {"before", "after"}) {
      CAPTURE(change);
      CAPTURE(when);
      ChangeHarness harness;
      harness.open();
      CHECK(harness.commit_one(later_job()).outcome == Outcome::invalid);
      const DeadLetterId id = harness.only_letter().id;
      harness.close();
      const ProcessEnd end =
          play("scene: change a dead letter and die", {{"SCENE_CHANGE", change},
                                                       {"SCENE_KILL", "worker." + when + "-change:1"},
                                                       {"SCENE_DIRECTORY", harness.directory.path()}});
      REQUIRE(end.is_kill());
      harness.open();
      const bool done = when == "after";
      CHECK(harness.counts().dead_letters == (done ? 0U : 1U));
      CHECK(harness.counts().results == (done && change == "redrive" ? 1U : 0U));
      CHECK(harness.audit().size() == (done ? 1U : 0U));
      if (!done) CHECK(harness.only_letter().redrives == 0);

      // What was left undone can be done.
      harness.handlers = later_done();
      if (!done) CHECK(harness.redrive(id).settlement.outcome == Outcome::stored);
      harness.check_counters_by_scan();
    }
  }
}

TEST_CASE("a change whose sync fails is unknown and so is everything after it until the store is opened again") {
  for (const bool purges : {false, true}) {
    CAPTURE(purges);
    const auto faults = std::make_shared<Faults>();
    ChangeHarness harness;
    harness.options.environment = faulty_environment(faults);
    harness.open();
    CHECK(harness.commit_one(later_job()).outcome == Outcome::invalid);
    const DeadLetterId id = harness.only_letter().id;
    harness.handlers = later_done();
    faults->fail_from(FaultAt::log_sync, 1);
    if (purges) {
      const auto purged = harness.store->purge(id, kim);
      REQUIRE(!purged.has_value());
      CHECK(purged.error().code == ErrorCode::store_unavailable);
    } else {
      const auto redriven = harness.store->redrive(id, harness.handlers, kim);
      REQUIRE(!redriven.has_value());
      CHECK(redriven.error().code == ErrorCode::store_unavailable);
    }
    faults->clear();
    const Batch batch({job_bytes("demo-2", {1})});
    const auto settled = harness.store->commit(batch.view(), harness.handlers);
    REQUIRE(!settled.has_value());
    CHECK(settled.error().code == ErrorCode::store_unavailable);
    harness.reopen();
    CHECK(harness.counts().dead_letters + harness.counts().results + (purges ? harness.audit().size() : 0) == 1);
    harness.check_counters_by_scan();
  }
}

TEST_CASE("a change is synced in page-cache mode too") {
  const auto faults = std::make_shared<Faults>();
  ChangeHarness harness;
  harness.options.environment = faulty_environment(faults);
  harness.options.durability = Durability::page_cache;
  harness.open();
  CHECK(harness.commit_one(later_job()).outcome == Outcome::invalid);
  const DeadLetterId id = harness.only_letter().id;
  harness.handlers = later_done();
  const std::uint64_t before = faults->calls(FaultAt::log_sync);
  CHECK(harness.redrive(id).removed);
  CHECK(faults->calls(FaultAt::log_sync) == before + 1);
  CHECK(harness.row("demo-1", "later")->durability == Durability::fsync);
}

TEST_CASE("redrives and purges beside deliveries of the same jobs leave one row a job and counters that equal a scan") {
  constexpr int jobs = 40;
  ChangeHarness harness;
  harness.open();
  std::vector<Bytes> bytes;
  for (int number = 0; number < jobs; ++number)
    bytes.push_back(later_job("job-" + std::to_string(number)));
  CHECK(harness.commit(bytes).size() == jobs);
  const auto letters = harness.dead_letters();
  REQUIRE(letters.size() == jobs);
  const Handlers done = later_done();
  const Handlers none = built_in_handlers();

  std::atomic<int> errors{0};
  std::vector<std::thread> threads;
  for (const Handlers *handlers : {&done, &none, &done}) {
    threads.emplace_back([&, handlers] {
      for (const Bytes &job : bytes) {
        const Batch batch({job, job});
        if (!harness.store->commit(batch.view(), *handlers)) ++errors;
      }
    });
  }
  for (const bool purges : {false, true, false}) {
    threads.emplace_back([&, purges] {
      for (const DeadLetter &letter : letters) {
        const auto code = purges
                              ? [&](const auto &result) { return result ? ErrorCode::not_found : result.error().code; }(
                                    harness.store->purge(letter.id, kim))
                              : [&](const auto &result) {
                                  return result ? ErrorCode::not_found : result.error().code;
                                }(harness.store->redrive(letter.id, done, kim));
        if (code != ErrorCode::not_found) ++errors;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(errors == 0);
  CHECK(harness.counts().results == jobs); // each was delivered with its handler at least once
  harness.check_counters_by_scan();
}
