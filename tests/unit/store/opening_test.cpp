// What an opening accepts and what it refuses: lost logs, damage, newer formats, killed stores, read-only.
// What it does not show: power loss (the page cache outlives a killed process).
#include <doctest/doctest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "base/directory_kind.hpp"
#include "onced/version.hpp"
#include "rocksdb/durable_mark.hpp"
#include "store/rows/records.hpp"
#include "support/file_content.hpp"
#include "support/raw_database.hpp"
#include "support/scene.hpp"
#include "support/seeds.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;
using rocks::StoreIdentity;

namespace {

namespace fs = std::filesystem;

// A store that a process left without closing: `jobs` batches of one, each acknowledged, then SIGKILL.
void leave_killed_store(const fs::path &directory, unsigned jobs, Durability durability = Durability::fsync) {
  const ProcessEnd end = play("scene: commit jobs and die", {{"SCENE_DIRECTORY", directory},
                                                             {"SCENE_JOBS", std::to_string(jobs)},
                                                             {"SCENE_DURABILITY", std::string(name_of(durability))}});
  REQUIRE(end.is_kill());
}

Bytes numbered_job(unsigned number) {
  return job_bytes("job-" + std::to_string(number), {number});
}

std::vector<fs::path> logs_of(const fs::path &directory) {
  std::vector<fs::path> logs;
  for (const auto &entry : fs::directory_iterator(directory / "db")) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) logs.push_back(entry.path());
  }
  return logs;
}

fs::path only_log_of(const fs::path &directory) {
  const auto logs = logs_of(directory);
  REQUIRE(logs.size() == 1);
  return logs[0];
}

void flip_bit(const fs::path &path, std::uintmax_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const auto byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

// Every file but those that an opening may write about itself.
std::map<std::string, std::string> contents_below(const fs::path &directory) {
  std::map<std::string, std::string> contents;
  for (const auto &entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) contents[entry.path().lexically_relative(directory)] = content_of(entry.path());
  }
  return contents;
}

void check_refused(StoreHarness &harness, ErrorCode code) {
  const auto opened = harness.try_open();
  REQUIRE(!opened.has_value());
  CAPTURE(describe(opened.error()));
  CHECK(opened.error().code == code);
  CHECK(!opened.error().cause.empty());
  CHECK(!opened.error().remedy.empty());
}

// Refused as a loss again and again; with `accept_loss` opened once, and from then on as always.
void check_loss_is_noticed_and_can_be_accepted(StoreHarness &harness) {
  check_refused(harness, ErrorCode::loss_suspected);
  check_refused(harness, ErrorCode::loss_suspected);
  harness.options.read_only = true;
  CHECK(!harness.try_open().has_value());
  harness.options.read_only = false;

  harness.options.accept_loss = true;
  const auto accepted = harness.try_open();
  REQUIRE_MESSAGE(accepted.has_value(), describe(accepted.error()));
  CHECK(harness.commit_one(job_bytes("after the loss", {1})).outcome == Outcome::stored);
  harness.options.accept_loss = false;
  harness.reopen();
  CHECK(harness.commit_one(job_bytes("after the loss", {1})).outcome == Outcome::duplicate);
}

rocks::MarkContent mark_content_of(const fs::path &directory) {
  const auto mark = rocks::DurableMark::open(directory, store_mark_name, true);
  REQUIRE(mark.has_value());
  return mark->content();
}

std::uint64_t mark_of(const fs::path &directory) {
  return mark_content_of(directory).sequence;
}

void replace_mark(const fs::path &directory, rocks::MarkContent content) {
  REQUIRE(rocks::DurableMark::create(directory, store_mark_name, std::move(content)).has_value());
}

void copy_all(const fs::path &from, const fs::path &to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

// So that the store draws other ids than those of the other harnesses.
void skip_ids(StoreHarness &harness) {
  for (int drawn = 0; drawn < 100; ++drawn)
    (void)harness.random.next();
}

// Refused as a loss, for a cause that has these words.
void check_loss(StoreHarness &harness, const std::string &words) {
  const auto opened = harness.try_open();
  REQUIRE(!opened.has_value());
  CAPTURE(describe(opened.error()));
  CHECK(opened.error().code == ErrorCode::loss_suspected);
  CHECK(opened.error().cause.find(words) != std::string::npos);
}

std::uint64_t boot_count(const BootId &boot) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < 8; ++at)
    count = count << 8U | boot.bytes[at];
  return count;
}

} // namespace

TEST_CASE("scene: commit jobs and die" * doctest::skip()) {
  if (scene_parameter("SCENE_DIRECTORY").empty()) return;
  StoreHarness harness(scene_parameter("SCENE_DIRECTORY"));
  harness.options.durability = durability_of(scene_parameter("SCENE_DURABILITY")).value();
  harness.open();
  const unsigned jobs = static_cast<unsigned>(std::stoul(scene_parameter("SCENE_JOBS")));
  for (unsigned number = 0; number < jobs; ++number) {
    if (harness.commit_one(numbered_job(number)).outcome != Outcome::stored) return; // ends with a status of its own
  }
  kill_this_process();
}

TEST_CASE("what a killed store acknowledged is there when it is opened again") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  harness.open();
  CHECK(harness.counts().results == 50);
  for (unsigned number = 0; number < 50; ++number)
    CHECK(harness.commit_one(numbered_job(number)).outcome == Outcome::duplicate);
  CHECK(harness.counts().results == 50);
}

TEST_CASE("a log cut short is noticed") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  const auto log = only_log_of(harness.directory.path());
  fs::resize_file(log, fs::file_size(log) / 2);
  check_loss_is_noticed_and_can_be_accepted(harness);
}

TEST_CASE("the loss of the last acknowledged row alone is noticed") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  const auto log = only_log_of(harness.directory.path());
  fs::resize_file(log, fs::file_size(log) - 1);
  check_loss_is_noticed_and_can_be_accepted(harness);
}

TEST_CASE("a deleted log is noticed") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  fs::remove(only_log_of(harness.directory.path()));
  check_loss_is_noticed_and_can_be_accepted(harness);
  CHECK(harness.counts().results == 1);
}

TEST_CASE("a missing CURRENT is noticed") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  fs::remove(harness.directory.path() / "db" / "CURRENT");
  check_refused(harness, ErrorCode::loss_suspected);
  check_refused(harness, ErrorCode::loss_suspected);
  CHECK(!fs::exists(harness.directory.path() / "db" / "CURRENT"));
}

TEST_CASE("a missing CURRENT beside logs cannot be accepted until the folder is moved away") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  const auto database = harness.directory.path() / "db";
  const std::string log = content_of(only_log_of(harness.directory.path()));
  const std::string current = content_of(database / "CURRENT");
  fs::remove(database / "CURRENT");
  harness.options.accept_loss = true;
  check_refused(harness, ErrorCode::corrupt);
  CHECK(content_of(only_log_of(harness.directory.path())) == log);
  harness.options.accept_loss = false;

  SUBCASE("put back it opens as before") {
    std::ofstream(database / "CURRENT") << current;
    harness.open();
    CHECK(harness.counts().results == 50);
  }
  SUBCASE("moved away it is a loss like any other") {
    fs::rename(database, harness.directory.path() / "db.damaged");
    check_loss_is_noticed_and_can_be_accepted(harness);
    CHECK(harness.counts().results == 1);
  }
}

TEST_CASE("a log that is put back after a refused opening ends the refusal") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  const auto log = only_log_of(harness.directory.path());
  const std::string whole = content_of(log);
  SUBCASE("it had been deleted") {
    fs::remove(log);
  }
  SUBCASE("it had been cut short") {
    fs::resize_file(log, fs::file_size(log) / 2);
  }
  check_refused(harness, ErrorCode::loss_suspected);
  std::ofstream(log, std::ios::binary | std::ios::trunc) << whole;
  harness.open();
  CHECK(harness.counts().results == 50);
}

TEST_CASE("accepting the loss of a log keeps the rows that were in tables already") {
  StoreHarness harness;
  REQUIRE(play("scene: fill a table and die", {{"SCENE_DIRECTORY", harness.directory.path()}}).is_kill());
  for (const auto &log : logs_of(harness.directory.path()))
    fs::remove(log);
  check_loss_is_noticed_and_can_be_accepted(harness);
  CHECK(harness.counts().results > 400); // 32 MiB of results of 60 kB
}

TEST_CASE("scene: fill a table and die" * doctest::skip()) {
  if (scene_parameter("SCENE_DIRECTORY").empty()) return;
  StoreHarness harness(scene_parameter("SCENE_DIRECTORY"));
  const Bytes big(60'000, 'x');
  const auto handler = [&](const HandlerCall &) {
    Done done;
    messagepack::Writer(done.result).binary(big);
    return done;
  };
  REQUIRE(harness.handlers.add_inline("big", handler).has_value());
  harness.open();
  // Two, since the first is in the database for certain only once the second is begun.
  const auto has_tables = [&] {
    unsigned tables = 0;
    for (const auto &entry : fs::directory_iterator(harness.options.directory / "db")) {
      if (entry.path().extension() == ".sst" && entry.file_size() > 0) ++tables;
    }
    return tables >= 2;
  };
  for (unsigned number = 0; number < 2'000 && !has_tables(); number += 10) {
    Batch batch;
    for (unsigned at = number; at < number + 10; ++at)
      batch.add(job_bytes({.operation_id = "job-" + std::to_string(at), .numbers = {at}, .type = "big"}));
    REQUIRE(harness.commit(batch).size() == 10);
  }
  REQUIRE(has_tables());
  kill_this_process();
}

TEST_CASE("a missing database folder is noticed") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  fs::remove_all(harness.directory.path() / "db");
  check_loss_is_noticed_and_can_be_accepted(harness);
  CHECK(harness.counts().results == 1);
}

TEST_CASE("a missing mark is noticed and accepting it loses no row") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  fs::remove(harness.directory.path() / "durable.mark");
  check_refused(harness, ErrorCode::loss_suspected);
  CHECK(!fs::exists(harness.directory.path() / "durable.mark"));
  check_loss_is_noticed_and_can_be_accepted(harness);
  CHECK(harness.counts().results == 51);
}

TEST_CASE("a damaged mark is refused as corrupt and can be given up") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 10);
  std::ofstream(harness.directory.path() / "durable.mark") << "nonsense";
  check_refused(harness, ErrorCode::corrupt);
  harness.options.accept_loss = true;
  harness.open();
  CHECK(harness.counts().results == 10);
  harness.options.accept_loss = false;
  harness.reopen();
  CHECK(harness.counts().results == 10);
}

TEST_CASE("a torn tail that was never acknowledged is cut off") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  const auto log = only_log_of(harness.directory.path());
  const std::string content = content_of(log);
  // The head of a record whose rest did not reach the disk: as long as an older record, cut in its middle.
  std::ofstream(log, std::ios::binary | std::ios::app) << content.substr(content.size() - 120, 60);
  SUBCASE("half a record") {}
  SUBCASE("a header alone") {
    fs::resize_file(log, content.size() + 5);
  }
  harness.open();
  CHECK(harness.counts().results == 50);
  CHECK(harness.commit_one(numbered_job(49)).outcome == Outcome::duplicate);
  CHECK(harness.commit_one(numbered_job(50)).outcome == Outcome::stored);
  harness.reopen();
  CHECK(harness.counts().results == 51);
}

TEST_CASE("a flipped bit in the middle of the log is refused as corrupt") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  const auto log = only_log_of(harness.directory.path());
  // In the body of a record: the operation id of a job in the middle.
  const auto at = content_of(log).find("job-25");
  REQUIRE(at != std::string::npos);
  flip_bit(log, at + 2);
  check_refused(harness, ErrorCode::corrupt);
  check_refused(harness, ErrorCode::corrupt);
  harness.options.read_only = true;
  check_refused(harness, ErrorCode::corrupt);
}

TEST_CASE("a flipped bit anywhere in the log never goes unnoticed") {
  const Seed seed = drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed.number);
  ScratchDirectory original;
  leave_killed_store(original.path(), 30);
  for (int round = 0; round < 12; ++round) {
    StoreHarness harness;
    fs::copy(original.path(), harness.directory.path(), fs::copy_options::recursive);
    const auto log = only_log_of(harness.directory.path());
    const std::uintmax_t at = random() % fs::file_size(log);
    CAPTURE(at);
    flip_bit(log, at);
    const auto opened = harness.try_open();
    REQUIRE(!opened.has_value());
    const bool told = opened.error().code == ErrorCode::corrupt || opened.error().code == ErrorCode::loss_suspected;
    CHECK_MESSAGE(told, describe(opened.error()));
  }
}

// As where MANIFEST was cut short, and asks for logs that are in tables it has forgotten.
TEST_CASE("a complete log that is needed and is not read whole is noticed") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 20);
  const rocks::MarkContent known = mark_content_of(harness.directory.path());
  rocks::MarkContent content = known;
  std::string refused;
  SUBCASE("it is missing") {
    content.complete = {{.number = known.newest.number + 1, .first = 1, .last = 5}};
    refused = "is missing or has no row, or MANIFEST was cut short";
  }
  SUBCASE("it is shorter") {
    content.complete = {{.number = known.newest.number, .first = known.newest.first, .last = known.sequence + 100}};
    refused = "could be read to row";
  }
  SUBCASE("it is another") {
    content.newest.first += 1;
    refused = "instead of " + std::to_string(content.newest.first);
  }
  SUBCASE("it is whole") {
    content.complete = {{.number = known.newest.number, .first = known.newest.first, .last = known.sequence}};
  }
  SUBCASE("it is in tables") {
    harness.open();
    harness.close();
    content = mark_content_of(harness.directory.path());
    content.complete = {{.number = known.newest.number, .first = 1, .last = 1000}};
  }
  replace_mark(harness.directory.path(), content);
  if (!refused.empty()) return check_loss(harness, refused);
  harness.open();
  CHECK(harness.counts().results == 20);
}

TEST_CASE("an older mark beside a newer database is noticed") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 20);
  const std::string older = content_of(harness.directory.path() / "durable.mark");
  leave_killed_store(harness.directory.path(), 0); // a boot without a job is enough
  std::ofstream(harness.directory.path() / "durable.mark", std::ios::binary) << older;
  check_loss(harness, "the mark is older than the database");
  check_loss_is_noticed_and_can_be_accepted(harness);
  CHECK(harness.counts().results == 21);
}

TEST_CASE("an older database under a newer mark is noticed") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 20);
  harness.open(); // its log is in tables
  harness.close();
  const ScratchDirectory older;
  copy_all(harness.directory.path() / "db", older.path() / "db");
  harness.open();
  harness.close();
  SUBCASE("of a boot before") {
    copy_all(older.path() / "db", harness.directory.path() / "db");
  }
  SUBCASE("of the boot before that") {
    harness.open();
    harness.close();
    copy_all(older.path() / "db", harness.directory.path() / "db");
  }
  check_loss_is_noticed_and_can_be_accepted(harness);
  CHECK(harness.counts().results == 21);
}

TEST_CASE("the database of another store is noticed and can be adopted") {
  StoreHarness other;
  skip_ids(other);
  other.open();
  for (unsigned number = 100; number < 130; ++number)
    CHECK(other.commit_one(numbered_job(number)).outcome == Outcome::stored);
  other.close();
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 10);
  copy_all(other.directory.path() / "db", harness.directory.path() / "db");
  SUBCASE("under a mark of fewer rows") {
    check_loss(harness, "the database is that of");
  }
  SUBCASE("under a mark of as many rows and boots") {
    auto content = mark_content_of(other.directory.path());
    content.identity = mark_content_of(harness.directory.path()).identity;
    replace_mark(harness.directory.path(), content);
    check_loss(harness, "the database is that of");
  }
  check_loss_is_noticed_and_can_be_accepted(harness);
  CHECK(harness.counts().results == 31);
  harness.close();
  CHECK(mark_content_of(harness.directory.path()).identity == mark_content_of(other.directory.path()).identity);
}

// At each step of an opening, in order, a process may have died: what it leaves is opened again.
TEST_CASE("a boot that was marked and wrote nothing is no loss") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 20);
  rocks::MarkContent content = mark_content_of(harness.directory.path());
  SUBCASE("the boot alone") {
    content.boot += 1;
    content.newest.number += 5;
    content.newest.first = content.sequence + 7; // numbers may be left out between two boots
    replace_mark(harness.directory.path(), content);
    harness.open();
    CHECK(harness.counts().results == 20);
    CHECK(boot_count(harness.store->boot()) == 2);
  }
  SUBCASE("two boots are one too many") {
    content.boot += 2;
    content.newest = {.number = content.newest.number + 5, .first = content.sequence + 1, .last = 0};
    replace_mark(harness.directory.path(), content);
    check_loss(harness, "the database is older than the mark");
  }
  SUBCASE("the boot and a row of it") {
    content.boot += 1;
    replace_mark(harness.directory.path(), content);
    check_loss(harness, "the database is older than the mark");
  }
  SUBCASE("the identity is in the database and not yet in the mark") {
    const StoreIdentity identity = content.identity;
    content.identity = {};
    replace_mark(harness.directory.path(), content);
    harness.open();
    CHECK(mark_content_of(harness.directory.path()).identity == identity);
  }
}

TEST_CASE("a mark of an older form beside a database with an identity is refused") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 5);
  fs::resize_file(harness.directory.path() / "durable.mark", 1056); // which is one of format 2 that knows nothing
  check_loss(harness, "the mark is of an older program");
  check_loss_is_noticed_and_can_be_accepted(harness);
}

TEST_CASE("a store keeps its identity and no two have the same") {
  StoreHarness harness;
  harness.open();
  const StoreIdentity identity = mark_content_of(harness.directory.path()).identity;
  CHECK(identity != StoreIdentity{});
  harness.reopen();
  CHECK(mark_content_of(harness.directory.path()).identity == identity);
  harness.close();
  CHECK(RawDatabase(harness.directory.path()).rows("meta").at("identity") == identity.view());
  StoreHarness other;
  skip_ids(other);
  other.open();
  CHECK(mark_content_of(other.directory.path()).identity != identity);
}

TEST_CASE("the mark never leads what is recovered") {
  StoreHarness harness;
  harness.open();
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (unsigned round = 0; round < 100; ++round) {
        const Batch batch({job_bytes(std::to_string(number) + "/" + std::to_string(round), {round}), "bad"});
        (void)harness.store->commit(batch.view(), harness.handlers);
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  harness.close();
  const std::uint64_t last = RawDatabase(harness.directory.path()).last_sequence();
  CHECK(mark_of(harness.directory.path()) == last); // and, once idle, it does not lag
  harness.open();
  CHECK(harness.counts().results == 400);
}

TEST_CASE("in page-cache mode commits do not move the mark and an orderly close does") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 20, Durability::page_cache);
  const std::uint64_t begun = mark_of(harness.directory.path());
  CHECK(begun == 3); // the three rows of a boot, which are synced in any mode
  harness.options.durability = Durability::page_cache;
  harness.open();
  CHECK(harness.counts().results == 20);            // the page cache outlives the process
  CHECK(mark_of(harness.directory.path()) > begun); // recovery put them on stable storage
  const std::uint64_t opened = mark_of(harness.directory.path());
  CHECK(harness.commit_one(numbered_job(20)).outcome == Outcome::stored);
  CHECK(mark_of(harness.directory.path()) == opened);
  harness.close();
  CHECK(mark_of(harness.directory.path()) > opened);
  harness.open();
  CHECK(harness.counts().results == 21);
}

TEST_CASE("losing what page-cache mode never promised is no reason to refuse") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 20, Durability::page_cache);
  const auto log = only_log_of(harness.directory.path());
  fs::resize_file(log, fs::file_size(log) * 3 / 4);
  harness.open();
  CHECK(harness.counts().results < 20);
}

TEST_CASE("each opening has an id of its own whose count rises") {
  StoreHarness harness;
  harness.open();
  const BootId first = harness.store->boot();
  harness.reopen();
  const BootId second = harness.store->boot();
  CHECK(boot_count(first) == 1);
  CHECK(boot_count(second) == 2);
  CHECK(first.view().substr(8) != second.view().substr(8));

  StoreHarness same_seed;
  CHECK(same_seed.open().boot() == first);
  CHECK(same_seed.reopen().boot() == second);
  StoreHarness other_seed;
  SeededRandom random(2);
  const auto other = Store::open(other_seed.options, other_seed.clock, random);
  REQUIRE(other.has_value());
  CHECK((*other)->boot() != first);
  CHECK(boot_count((*other)->boot()) == 1);
}

TEST_CASE("a killed boot is counted too") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 1);
  CHECK(boot_count(harness.open().boot()) == 2);
}

TEST_CASE("a newer format is refused and left as it is") {
  StoreHarness harness;
  harness.open();
  harness.close();
  const Bytes newer = messagepack::encode_number(disk_format + 1);
  RawDatabase(harness.directory.path()).put("meta", "format", newer);
  for (const bool read_only : {false, true}) {
    harness.options.read_only = read_only;
    check_refused(harness, ErrorCode::newer_format);
  }
  CHECK(RawDatabase(harness.directory.path()).rows("meta").at("format") == newer);
}

TEST_CASE("a column family that this program does not know is refused as a newer format") {
  StoreHarness harness;
  harness.open();
  harness.close();
  RawDatabase(harness.directory.path()).add_family("stranger");
  check_refused(harness, ErrorCode::newer_format);
  check_refused(harness, ErrorCode::newer_format);
}

TEST_CASE("a database without its format row is refused as corrupt") {
  StoreHarness harness;
  harness.open();
  harness.close();
  RawDatabase(harness.directory.path()).erase("meta", "format");
  check_refused(harness, ErrorCode::corrupt);
}

TEST_CASE("damaged meta rows are refused as corrupt") {
  for (const std::string name :
       {"format", "boots", "sums/0", "sums/x", "sums/", "counters/0", "letter-bytes/0", "changes"}) {
    CAPTURE(name);
    StoreHarness harness;
    harness.open();
    harness.close();
    RawDatabase(harness.directory.path()).put("meta", name, "garbage");
    check_refused(harness, ErrorCode::corrupt);
  }
}

TEST_CASE("reading a directory without a database finds nothing and makes nothing") {
  StoreHarness harness;
  harness.options.read_only = true;
  check_refused(harness, ErrorCode::not_found);
  CHECK(fs::is_empty(harness.directory.path()));
}

TEST_CASE("a read-only opening of a killed store sees its rows and changes no file") {
  StoreHarness harness;
  leave_killed_store(harness.directory.path(), 50);
  const auto before = contents_below(harness.directory.path());
  harness.options.read_only = true;
  for (int round = 0; round < 2; ++round) {
    harness.open();
    CHECK(harness.counts().results == 50);
    CHECK(harness.row("job-7")->result == integer_result(7));
    CHECK(harness.store->boot() == BootId{});
    const Batch batch({numbered_job(1)});
    const auto refused = harness.store->commit(batch.view(), harness.handlers);
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::usage);
    harness.close();
  }
  auto after = contents_below(harness.directory.path());
  for (const auto &file : before) {
    CHECK_MESSAGE(after[file.first] == file.second, file.first);
    after.erase(file.first);
  }
  for (const auto &file : after)
    FAIL_CHECK("a read-only opening made " << file.first);
}

TEST_CASE("a second opening by another process is refused as locked") {
  StoreHarness harness;
  harness.open();
  const ProcessEnd end = play("scene: open a store that is held", {{"SCENE_DIRECTORY", harness.directory.path()}});
  CHECK(end.is_success());
  CHECK(harness.commit_one(numbered_job(1)).outcome == Outcome::stored);
}

TEST_CASE("scene: open a store that is held" * doctest::skip()) {
  if (scene_parameter("SCENE_DIRECTORY").empty()) return;
  StoreHarness harness(scene_parameter("SCENE_DIRECTORY"));
  check_refused(harness, ErrorCode::locked);
}

TEST_CASE("a kill at each point around the commit leaves a store that a redelivery settles") {
  for (const KillPoint point :
       {KillPoint::worker_looked_up, KillPoint::worker_before_commit, KillPoint::worker_after_commit}) {
    CAPTURE(name_of(point));
    StoreHarness harness;
    const ProcessEnd end =
        play("scene: commit with a kill switch",
             {{"SCENE_DIRECTORY", harness.directory.path()}, {"SCENE_POINT", std::string(name_of(point)) + ":3"}});
    REQUIRE(end.is_kill());
    harness.open();
    const bool committed = point == KillPoint::worker_after_commit;
    CHECK(harness.counts().results == (committed ? 3 : 2));
    CHECK(harness.commit_one(numbered_job(2)).outcome == (committed ? Outcome::duplicate : Outcome::stored));
    CHECK(harness.counts().results == 3);
  }
}

TEST_CASE("scene: commit with a kill switch" * doctest::skip()) {
  if (scene_parameter("SCENE_DIRECTORY").empty()) return;
  auto kill_switch = KillSwitch::parse(scene_parameter("SCENE_POINT"));
  REQUIRE(kill_switch.has_value());
  StoreHarness harness(scene_parameter("SCENE_DIRECTORY"));
  harness.options.kill_switch = &*kill_switch;
  harness.open();
  for (unsigned number = 0; number < 5; ++number)
    CHECK(harness.commit_one(numbered_job(number)).outcome == Outcome::stored);
}
