// A database of each disk format that was ever written, checked in under tests/data, is opened by this program.
#include <doctest/doctest.h>

#include "base/directory_kind.hpp"
#include "onced/version.hpp"
#include "rocksdb/durable_mark.hpp"
#include "store/rows/older_sums.hpp"
#include "store/rows/records.hpp"
#include "support/raw_sums.hpp"
#include "support/relay_harness.hpp"
#include "support/scene.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

const std::string long_id(255, 'x');

Bytes float_job() {
  Bytes out;
  messagepack::Writer writer(out);
  writer.map(2).string("operation_id").string("demo-float");
  writer.string("numbers").array(2).floating(0.5).floating(0.25);
  return out;
}

Bytes float_result() {
  Bytes out;
  messagepack::Writer(out).floating(0.75);
  return out;
}

Bytes unknown_type_job() {
  return job_bytes({.operation_id = "demo-3", .numbers = {1}, .type = "unheard-of"});
}

Bytes effect_job() {
  return job_bytes({.operation_id = "demo-2", .numbers = {4, 5}, .effect_key = "invoice-7"});
}

struct FormatHarness : StoreHarness {
  // Works on a copy: an opening writes.
  explicit FormatHarness(unsigned format) {
    fs::copy(ONCED_TESTS_DIR "/data/store-format-" + std::to_string(format), directory.path(),
             fs::copy_options::recursive);
  }
};

void check_operation(const OperationRow &row, const Bytes &job, const Bytes &result, Durability durability) {
  const Batch batch({job});
  CHECK(row.phase == Phase::committed);
  CHECK(row.digest == batch.view()[0].digest);
  CHECK(row.result == result);
  CHECK(row.operation_id == batch.view()[0].job->operation_id);
  CHECK(row.type == "sum");
  CHECK(row.effect_key == batch.view()[0].job->effect_key);
  CHECK(row.issued_at == WallTime{std::chrono::microseconds{1'699'999'999'000'000}});
  CHECK(row.worker_build.starts_with("0.1.0+"));
  CHECK(row.durability == durability);
}

void check_letter(const DeadLetter &letter, Outcome reason, const Bytes &bytes, std::uint64_t deliveries) {
  CHECK(letter.reason == reason);
  CHECK(letter.bytes == bytes);
  CHECK(letter.deliveries == deliveries);
  CHECK(letter.receives == 0);
  CHECK(letter.redrives == 0);
  CHECK(letter.issued_at == WallTime{std::chrono::microseconds{1'699'999'999'000'000}});
  CHECK(letter.sender.bytes == std::array<std::uint8_t, 16>{0x5E, 0x5E, 0x5E, 0x5E, 0x5E, 0x5E, 0x5E, 0x5E, 0x5E, 0x5E,
                                                            0x5E, 0x5E, 0x5E, 0x5E, 0x5E, 0x5E});
  CHECK(!letter.detail.empty());
  const Batch batch({bytes});
  const Delivery &delivery = batch.view()[0];
  CHECK(letter.offered_digest.has_value() == (delivery.job != nullptr));
  if (delivery.job == nullptr) return;
  CHECK(letter.operation_id == delivery.job->operation_id);
  CHECK(letter.type == delivery.job->type);
  CHECK(letter.offered_digest == delivery.digest);
}

const DeadLetter &letter_of(const std::vector<DeadLetter> &letters, const Bytes &bytes) {
  const auto found =
      std::find_if(letters.begin(), letters.end(), [&](const DeadLetter &letter) { return letter.bytes == bytes; });
  REQUIRE(found != letters.end());
  return *found;
}

// What the databases of all formats hold.
void check_common_rows(const StoreHarness &harness) {
  const WallTime began = ManualClock().now;

  check_operation(harness.row("demo-1").value(), job_bytes("demo-1", {1, 2, 3}), integer_result(6), Durability::fsync);
  CHECK(harness.row("demo-1")->committed_at == began);
  check_operation(harness.row("demo-float").value(), float_job(), float_result(), Durability::fsync);
  check_operation(harness.row(long_id).value(), job_bytes(long_id, {}), integer_result(0), Durability::fsync);
  check_operation(harness.store->get(key_of_effect("invoice-7"))->value(), effect_job(), integer_result(9),
                  Durability::fsync);
  check_operation(harness.row("demo-lazy").value(), job_bytes("demo-lazy", {7}), integer_result(7),
                  Durability::page_cache);
  CHECK(harness.row("demo-lazy")->committed_at == began + std::chrono::seconds(2));

  const auto letters = harness.dead_letters();
  const DeadLetter &conflict = letter_of(letters, job_bytes("demo-1", {9}));
  check_letter(conflict, Outcome::conflict, job_bytes("demo-1", {9}), 2);
  CHECK(conflict.stored_digest == harness.row("demo-1")->digest);
  CHECK(conflict.first_at == began + std::chrono::seconds(1));
  CHECK(conflict.last_at == began + std::chrono::seconds(2));
  check_letter(letter_of(letters, "not-json"), Outcome::invalid, "not-json", 3);
  check_letter(letter_of(letters, unknown_type_job()), Outcome::invalid, unknown_type_job(), 1);
  check_letter(letter_of(letters, job_bytes("demo-4", {int64_max, 1})), Outcome::failed,
               job_bytes("demo-4", {int64_max, 1}), 1);
}

// `demo-split` sent two on; the second was refused.
void check_messages(const StoreHarness &harness) {
  const WallTime created = ManualClock().now + std::chrono::seconds(2);
  const Bytes parent = key_of_operation("split", "demo-split").bytes;
  const auto page = harness.store->relay().page("next", {}, 10);
  REQUIRE(page->entries.size() == 1);
  CHECK(page->entries[0].key == store::relay_key("next", parent, 0));
  CHECK(page->entries[0].row.created_at == created);
  const auto letters = harness.dead_letters();
  const auto letter = std::find_if(letters.begin(), letters.end(),
                                   [](const DeadLetter &candidate) { return !candidate.relay_key.empty(); });
  REQUIRE(letter != letters.end());
  CHECK(letter->relay_key == store::relay_key("next", parent, 1));
  CHECK(letter->reason == Outcome::conflict);
  CHECK(letter->first_at == created);
}

} // namespace

// How the newest of them was made: see tests/data/README.md.
TEST_CASE("scene: write a database for tests/data" * doctest::skip()) {
  const std::string directory = scene_parameter("SCENE_DATABASE");
  if (directory.empty()) return;
  RelayHarness harness(directory);
  CHECK(harness.commit({job_bytes("demo-1", {1, 2, 3}), float_job(), effect_job(), job_bytes(long_id, {})}).size() ==
        4);
  harness.clock.now += std::chrono::seconds(1);
  CHECK(harness.commit({job_bytes("demo-1", {9}), "not-json", unknown_type_job(), job_bytes("demo-4", {int64_max, 1})})
            .size() == 4);
  harness.clock.now += std::chrono::seconds(1);
  CHECK(harness.commit({job_bytes("demo-1", {9}), "not-json", "not-json"}).size() == 3);
  CHECK(harness
            .commit({slow_job("waiting"), slow_job("leased"), pay_job("calling"), pay_job("held"), slow_job("done"),
                     pay_job("failed"), slow_job("leased", 2)})
            .size() == 7);
  for (const char *id : {"leased", "done"})
    CHECK(harness.receive(id).answer == store::Received::Answer::job);
  for (const char *id : {"calling", "held", "failed"})
    CHECK(harness.receive(id, "pay").answer == store::Received::Answer::job);
  CHECK(harness.settle("held", unknown("no answer"), "pay") == store::QueueSettled::held);
  CHECK(harness.settle("done", done(7)) == store::QueueSettled::committed);
  CHECK(harness.settle(
            "failed",
            {.verdict = store::QueueVerdict::exhausted, .error = "killed", .effect = store::QueueEffect::unknown},
            "pay") == store::QueueSettled::failed);
  harness.messages = {message_to("next", 1), message_to("next", 2)};
  CHECK(harness.commit_one(split_job("demo-split")).outcome == Outcome::stored);
  CHECK(harness.bury(harness.waiting().at(1).key, Outcome::conflict, "taken") == store::RelayBuried::buried);
  harness.options.durability = Durability::page_cache;
  harness.reopen();
  CHECK(harness.commit({job_bytes("demo-lazy", {7})}).size() == 1);
  harness.close();
}

TEST_CASE("every row of a database of format 2 and of format 3 is read") {
  unsigned format = 0;
  bool read_only = false;
  for (const unsigned each : {2U, 3U}) {
    SUBCASE(("format " + std::to_string(each) + ", read-only").c_str()) {
      format = each;
      read_only = true;
    }
    SUBCASE(("format " + std::to_string(each) + ", for writing").c_str()) {
      format = each;
    }
  }
  FormatHarness harness(format);
  harness.options.read_only = read_only;
  harness.open();
  const Counts counts = harness.counts();
  CHECK(counts.results == 7);
  CHECK(counts.dead_letters == 7);
  CHECK(counts.pending == 4);
  CHECK(counts.relayed == 1);
  check_common_rows(harness);
  CHECK(harness.store->verify()->problems == 0);
  const auto page = harness.store->queue().queued({}, 10);
  REQUIRE(page.has_value());
  REQUIRE(page->entries.size() == 4); // in the order of their keys
  using store::QueueState;
  const std::vector<std::pair<std::string, QueueState>> expected{{"held", QueueState::held},
                                                                 {"calling", QueueState::calling},
                                                                 {"leased", QueueState::leased},
                                                                 {"waiting", QueueState::waiting}};
  for (std::size_t at = 0; at < expected.size(); ++at) {
    const store::QueueRow &row = page->entries[at].row;
    CHECK(row.operation_id == expected[at].first);
    CHECK(row.state == expected[at].second);
    CHECK(row.accepted_at == ManualClock().now + std::chrono::seconds(2));
    CHECK(row.receives == (row.operation_id == "waiting" ? 0U : 1U));
    CHECK(row.token.boot == (row.operation_id == "waiting" ? 0U : 2U));
    CHECK(row.owner == (row.type == "pay" ? "treasury" : ""));
  }
  CHECK(page->entries[0].row.errors == std::vector<std::string>{"no answer"});
  CHECK(page->entries[0].row.effect_unknown);
  CHECK(harness.store->queue().find(page->entries[3].key)->value().bytes == slow_job("waiting"));
  const auto letters = harness.dead_letters();
  const DeadLetter &failed = letter_of(letters, pay_job("failed"));
  CHECK(failed.errors == std::vector<std::string>{"killed"});
  CHECK(failed.effect_unknown);
  CHECK(failed.receives == 1);
  CHECK(letter_of(letters, slow_job("leased", 2)).stored_phase == Phase::pending);
  check_messages(harness);
}

TEST_CASE("a database of format 2 is upgraded by its first opening for writing and has an identity") {
  FormatHarness harness(2);
  const auto content = [&] {
    const auto mark = rocks::DurableMark::open(harness.directory.path(), store_mark_name, true);
    REQUIRE(mark.has_value());
    return mark->content();
  };
  harness.options.read_only = true;
  harness.open();
  CHECK(content().older);
  harness.options.read_only = false;
  harness.reopen();
  const rocks::StoreIdentity identity = content().identity;
  CHECK(!content().older);
  CHECK(content().boot == harness.store->boot().bytes[7]);
  CHECK(identity != rocks::StoreIdentity{});
  harness.reopen();
  CHECK(content().identity == identity);
  CHECK(harness.store->verify()->problems == 0);
  harness.close();
  const auto meta = RawDatabase(harness.directory.path()).rows("meta");
  CHECK(messagepack::decode_number(meta.at("format")) == disk_format);
  CHECK(meta.at("identity") == identity.view());
}

TEST_CASE("a database of a format before 2 is refused and left as it is") {
  FormatHarness harness(2);
  RawDatabase(harness.directory.path()).put("meta", "format", messagepack::encode_number(1));
  for (const bool read_only : {true, false}) {
    harness.options.read_only = read_only;
    const auto refused = harness.try_open();
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::newer_format);
    CHECK(refused.error().cause.find("from 2 on") != std::string::npos);
  }
}

// The sums of an older format lie in other rows.
TEST_CASE("a database of format 2 and of format 3 goes on being used") {
  for (const unsigned format : {2U, 3U}) {
    CAPTURE(format);
    FormatHarness harness(format);
    harness.open();
    const auto settled = harness.commit({job_bytes("demo-1", {1, 2, 3}), job_bytes("demo-new", {1, 1}),
                                         job_bytes("demo-1", {9}), float_job(), effect_job(), "not-json"});
    CHECK(outcomes_of(settled) == std::vector<Outcome>{Outcome::duplicate, Outcome::stored, Outcome::conflict,
                                                       Outcome::duplicate, Outcome::duplicate, Outcome::invalid});
    CHECK(settled[0].result == integer_result(6));
    CHECK(settled[3].result == float_result());
    harness.reopen();
    CHECK(harness.store->verify()->problems == 0);
    CHECK(!harness.store->upgrade().has_value());
    harness.close();
    const RawDatabase raw(harness.directory.path());
    const auto meta = raw.rows("meta");
    CHECK(messagepack::decode_number(meta.at("format")) == disk_format);
    for (const auto &[name, value] : meta)
      CHECK(!store::is_older_sum(name));
    CHECK(sums_of(raw)[engine::Counter::results] == 8);
    CHECK(sums_of(raw)[engine::Counter::dead_letters] == 7);
  }
}
