// `verify` passes a store with every kind of row, and tells of each kind of harm that is done to one past the store.
// Not here: damage to the files themselves, which is what tests/damage does.
#include <doctest/doctest.h>

#include "store/rows/records.hpp"
#include "support/queue_harness.hpp"
#include "support/raw_sums.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A store with results, dead letters of every kind, a redrive and purges, and queued jobs in every phase and state.
struct Sample : QueueHarness {
  Sample() {
    static_cast<void>(commit({job_bytes("one", {1}), job_bytes("two", {2}), "garbage", "more garbage",
                              job_bytes("one", {7}), job_bytes("big", {INT64_MAX, 1})}));
    static_cast<void>(commit({job_bytes("one", {1}), "garbage"}));
    const auto letters = dead_letters();
    REQUIRE(letters.size() == 4);
    for (const DeadLetter &letter : letters) {
      if (letter.reason == Outcome::failed) REQUIRE(store->redrive(letter.id, handlers, kim).has_value());
      if (letter.bytes == "more garbage") REQUIRE(store->purge(letter.id, kim).has_value());
    }
    queue_jobs();
  }

  // `waiting`, `leased`, `held`, `refused` and `done`, called as what becomes of them; and a conflict with one of them.
  void queue_jobs() {
    static_cast<void>(commit({slow_job("waiting"), slow_job("leased"), slow_job("held"), slow_job("refused"),
                              slow_job("done"), slow_job("refused", 2)}));
    for (const char *job : {"leased", "held", "refused", "done"})
      REQUIRE(receive(job).answer == store::Received::Answer::job);
    REQUIRE(settle("held", unknown("?")) == store::QueueSettled::held);
    REQUIRE(settle("refused", refused("no")) == store::QueueSettled::failed);
    REQUIRE(settle("done", done(1)) == store::QueueSettled::committed);
  }

  Verification verified() {
    if (!store) open();
    auto found = store->verify();
    if (!found) throw std::runtime_error(describe(found.error()));
    return std::move(*found);
  }
  // Does harm to the closed store, and gives what `verify` then says first.
  template <class Harm> std::string after(Harm &&harm) {
    close();
    harm(RawDatabase(directory.path()));
    const Verification found = verified();
    return found.problems == 0 ? "nothing"
                               : found.first_problems.front().where + ": " + found.first_problems.front().what;
  }
  [[nodiscard]] DeadLetter letter_of(Outcome reason) const {
    for (const DeadLetter &letter : dead_letters()) {
      if (letter.reason == reason && letter.type != "slow") return letter;
    }
    throw std::runtime_error("there is no such dead letter");
  }
};

const Bytes key_of_one = key_of_operation("sum", "one").bytes;

DeadLetterId letter_of_refused(const Sample &sample) {
  for (const DeadLetter &letter : sample.dead_letters()) {
    if (letter.reason == Outcome::failed && letter.type == "slow") return letter.id;
  }
  throw std::runtime_error("there is no such dead letter");
}

} // namespace

TEST_CASE("a store with every kind of row has no problem") {
  Sample sample;
  const Verification found = sample.verified();
  CHECK(found.problems == 0);
  CHECK(found.first_problems.empty());
  CHECK(found.operations == 7);
  CHECK(found.dead_letters == 5);
  CHECK(found.queued == 3);
  CHECK(found.audit_rows == 2);
  CHECK(found.counters == 7);
  CHECK(sample.after([](RawDatabase raw) { raw.compact(); }) == "nothing");
  CHECK(sample.verified().tables > 0);
  CHECK(sample.verified().table_bytes > 0);
}

TEST_CASE("a damaged row and a row under a wrong key are told") {
  CHECK(Sample().after([](RawDatabase raw) { raw.put("operations", key_of_one, "garbage"); }) ==
        "operations: the row is damaged");
  CHECK(Sample().after([](RawDatabase raw) {
    const Bytes row = raw.rows("operations").at(key_of_one);
    raw.erase("operations", key_of_one);
    raw.put("operations", key_of_operation("sum", "other").bytes, row);
  }) == "operations: the row lies under another key than that of its ids");
}

TEST_CASE("a result that is not canonical is told") {
  const std::string said = Sample().after([](RawDatabase raw) {
    Bytes row = raw.rows("operations").at(key_of_one);
    store::RecordDecoder decoder;
    auto record = decoder.operation(row);
    REQUIRE(record.has_value());
    record->result = std::string_view("\xCC\x01", 2); // 1, not in its shortest form
    Bytes harmed;
    store::encode_operation(*record, harmed);
    raw.put("operations", key_of_one, harmed);
  });
  CHECK(said == "operations: its result has no canonical form");
}

TEST_CASE("a dead letter that is damaged or whose bytes were changed is told") {
  for (const Outcome reason : {Outcome::conflict, Outcome::failed, Outcome::invalid}) {
    Sample sample;
    DeadLetter letter = sample.letter_of(reason);
    CHECK(sample.after([&](RawDatabase raw) { raw.put("dead_letters", letter.id.view(), "garbage"); }) ==
          "dead_letters: the row is damaged");
  }
  for (const Outcome reason : {Outcome::conflict, Outcome::failed}) {
    Sample sample;
    DeadLetter letter = sample.letter_of(reason);
    letter.bytes = job_bytes("one", {8});
    Bytes row;
    store::encode_dead_letter(letter, row);
    CHECK(sample.after([&](RawDatabase raw) { raw.put("dead_letters", letter.id.view(), row); }) ==
          "dead_letters: its digest or its ids are not those of its bytes");
  }
  Sample sample;
  DeadLetter letter = sample.letter_of(Outcome::invalid);
  letter.bytes += "!";
  Bytes row;
  store::encode_dead_letter(letter, row);
  CHECK(sample.after([&](RawDatabase raw) { raw.put("dead_letters", letter.id.view(), row); }) ==
        "dead_letters: the row lies under another id than that of its bytes");
}

TEST_CASE("a conflict whose row is gone and counters that do not fit are told") {
  CHECK(Sample().after([](RawDatabase raw) { raw.erase("operations", key_of_one); }) ==
        "dead_letters: the row that it was in conflict with is not there, or is another");
  CHECK(Sample().after([](RawDatabase raw) { raw.erase("operations", key_of_operation("sum", "two").bytes); }) ==
        "meta: the counters say 3 results, and there are 2");
  Sample sample;
  const DeadLetter letter = sample.letter_of(Outcome::failed);
  CHECK(sample.after([&](RawDatabase raw) { raw.erase("dead_letters", letter.id.view()); }) ==
        "meta: the counters say 5 dead letters, and there are 4");
}

TEST_CASE("a row of the queue that is damaged or has no pending key is told") {
  const Bytes key = key_of("waiting");
  CHECK(Sample().after([&](RawDatabase raw) { raw.put("queue", key, "garbage"); }) == "queue: the row is damaged");
  CHECK(Sample().after([&](RawDatabase raw) { raw.erase("operations", key); }) ==
        "queue: the row of its key is not pending");
  for (const char *job : {"done", "refused"}) {
    // It was brought back past the store.
    const std::string said = Sample().after([&](RawDatabase raw) {
      Bytes row;
      store::QueueRow gone;
      gone.bytes = slow_job(job);
      gone.operation_id = job;
      gone.type = "slow";
      encode_queued(gone, row);
      raw.put("queue", key_of(job), row);
    });
    CHECK(said == "queue: the row of its key is not pending");
  }
}

TEST_CASE("a queued job whose bytes are not those that were accepted is told") {
  const auto with_bytes = [](const Bytes &bytes) {
    return Sample().after([&](RawDatabase raw) {
      store::QueueRow row = store::RecordDecoder().queued(raw.rows("queue").at(key_of("waiting"))).value();
      row.bytes = bytes;
      Bytes value;
      encode_queued(row, value);
      raw.put("queue", key_of("waiting"), value);
    });
  };
  const std::string other = "operations: it is pending, and the job in the queue has another digest";
  CHECK(with_bytes(slow_job("waiting", 2)) == other);
  CHECK(with_bytes(slow_job("other")) == other);
  CHECK(with_bytes("no job") == other);
}

TEST_CASE("a pending key without its job and a failed one without its dead letter are told") {
  CHECK(Sample().after([](RawDatabase raw) { raw.erase("queue", key_of("leased")); }) ==
        "operations: it is pending, and there is no row of the queue for it");
  Sample sample;
  const DeadLetterId id = letter_of_refused(sample);
  CHECK(sample.after([&](RawDatabase raw) { raw.erase("dead_letters", id.view()); }) ==
        "operations: it has failed, and there is no dead letter");
}

TEST_CASE("a conflict with a row that was not committed then may outlive it") {
  Sample sample;
  REQUIRE(sample.store->purge(letter_of_refused(sample), kim).has_value());
  CHECK(sample.verified().problems == 0);
}

TEST_CASE("counters of the queue that do not fit are told") {
  const auto with_counters = [](engine::Counter counter) {
    return Sample().after([&](RawDatabase raw) { falsify_sum(raw, counter, 1); });
  };
  CHECK(with_counters(engine::Counter::queued) == "meta: the counters say 4 queued jobs, and there are 3");
  const auto bytes = slow_job("waiting").size() + slow_job("leased").size() + slow_job("held").size();
  CHECK(with_counters(engine::Counter::queued_bytes) == "meta: the counters say " + std::to_string(bytes + 1) +
                                                            " bytes of queued jobs, and there are " +
                                                            std::to_string(bytes));
}

TEST_CASE("unknown names and a gap in the audit are told") {
  CHECK(Sample().after([](RawDatabase raw) { raw.put("meta", "stranger", "x"); }) ==
        "meta: the row is damaged, or of a name that is not known");
  CHECK(Sample().after([](RawDatabase raw) {
    const Bytes row = raw.rows("meta").at(store::audit_name(2));
    raw.erase("meta", store::audit_name(2));
    raw.put("meta", store::audit_name(3), row);
  }) == "meta: rows of the audit before this one are missing");
}

TEST_CASE("counters that were lost are made anew by an opening that accepts the loss") {
  Sample sample;
  CHECK(sample.after([](RawDatabase raw) { raw.erase("meta", rocks::sums_name(0)); }) != "nothing");
  sample.close();
  sample.options.accept_loss = true;
  sample.open();
  CHECK(sample.verified().problems == 0);
  sample.options.accept_loss = false;
  sample.reopen();
  static_cast<void>(sample.commit({job_bytes("three", {3}), "garbage of another kind"}));
  CHECK(sample.verified().problems == 0);
}

TEST_CASE("commits are counted and their syncs timed") {
  StoreCounters counters;
  StoreHarness harness;
  harness.options.counters = &counters;
  harness.open();
  CHECK(counters.commits == 0);
  static_cast<void>(harness.commit_one(job_bytes("one", {1})));
  static_cast<void>(harness.commit_one(job_bytes("two", {2})));
  CHECK(counters.commits == 2);
  CHECK(counters.log_syncs == 2);
  static_cast<void>(harness.commit_one(job_bytes("two", {2}))); // a duplicate needs none
  CHECK(counters.commits == 2);
  harness.options.durability = Durability::page_cache;
  harness.reopen();
  static_cast<void>(harness.commit_one(job_bytes("three", {3})));
  CHECK(counters.commits == 3);
  CHECK(counters.log_syncs == 2);
}
