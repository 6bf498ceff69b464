// A directory that is deleted or replaced under an open store: what is written into it from then on, the next opening
// does not find, so nothing may be acknowledged. Not shown: what happens between the check and the reply.
#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string>

#include "rocksdb/log_files.hpp"
#include "support/eventually.hpp"
#include "support/faulty_environment.hpp"
#include "support/queue_harness.hpp"

using namespace onced;
using namespace onced::testing;
namespace fs = std::filesystem;

namespace {

// A store as a worker has it: under a lock that it checks.
struct LockedHarness : StoreHarness {
  explicit LockedHarness(std::shared_ptr<StorageEnvironment> environment = nullptr) {
    options.environment = std::move(environment);
    options.directory = data;
    auto taken = DirectoryLock::take(data, DirectoryLock::Mode::exclusive);
    REQUIRE(taken.has_value());
    lock.emplace(std::move(*taken));
    options.lock = &*lock;
    open();
  }
  ~LockedHarness() { close(); }

  [[nodiscard]] ErrorCode code_of_commit(const std::vector<Bytes> &jobs) const {
    const Batch batch(jobs);
    const auto settled = store->commit(batch.view(), handlers);
    return settled ? ErrorCode::internal : settled.error().code;
  }

  [[nodiscard]] fs::path newest_log() const {
    const auto logs = rocks::log_files(data / "db");
    return data / "db" / logs.back().name();
  }

  fs::path data = directory.path() / "data";
  fs::path elsewhere = directory.path() / "elsewhere";
  std::optional<DirectoryLock> lock;
};

void replace_by_copy(const fs::path &path, const fs::path &elsewhere) {
  fs::rename(path, elsewhere);
  fs::copy(elsewhere, path, fs::copy_options::recursive);
}

struct Misfortune {
  std::string name;
  void (*befall)(const LockedHarness &);
};

const std::array<Misfortune, 11> misfortunes{{
    {"the directory is deleted", [](const LockedHarness &store) { fs::remove_all(store.data); }},
    {"the directory is moved", [](const LockedHarness &store) { fs::rename(store.data, store.elsewhere); }},
    {"the directory is replaced by a copy",
     [](const LockedHarness &store) { replace_by_copy(store.data, store.elsewhere); }},
    {"the directory is replaced by a link to itself",
     [](const LockedHarness &store) {
       fs::rename(store.data, store.elsewhere);
       fs::create_directory_symlink(store.elsewhere, store.data);
     }},
    {"the lock is deleted", [](const LockedHarness &store) { fs::remove(store.data / "onced.lock"); }},
    {"the lock is replaced",
     [](const LockedHarness &store) { replace_by_copy(store.data / "onced.lock", store.elsewhere); }},
    {"the database is deleted", [](const LockedHarness &store) { fs::remove_all(store.data / "db"); }},
    {"the database is replaced by a copy",
     [](const LockedHarness &store) { replace_by_copy(store.data / "db", store.elsewhere); }},
    {"the database is emptied",
     [](const LockedHarness &store) {
       for (const auto &entry : fs::directory_iterator(store.data / "db"))
         fs::remove(entry.path());
     }},
    {"the newest log is deleted", [](const LockedHarness &store) { fs::remove(store.newest_log()); }},
    {"the newest log is replaced by a copy",
     [](const LockedHarness &store) { replace_by_copy(store.newest_log(), store.elsewhere); }},
}};

// Enough bad jobs to fill the memtable of dead letters, so that RocksDB begins a new log.
void begin_new_log(LockedHarness &harness) {
  const fs::path first = harness.newest_log();
  for (int number = 0; harness.newest_log() == first; ++number) {
    REQUIRE(number < 100);
    CHECK(harness.commit_one("bad " + std::to_string(number) + Bytes(900'000, 'x')).outcome == Outcome::invalid);
  }
}

} // namespace

TEST_CASE("a store whose files were deleted or replaced acknowledges no new job") {
  for (const Misfortune &misfortune : misfortunes) {
    CAPTURE(misfortune.name);
    LockedHarness harness;
    CHECK(harness.commit_one(job_bytes("before", {1})).outcome == Outcome::stored);
    misfortune.befall(harness);
    CHECK(harness.code_of_commit({job_bytes("after", {1})}) == ErrorCode::store_unavailable);
    CHECK(harness.code_of_commit({job_bytes("later", {1})}) == ErrorCode::store_unavailable);
  }
}

TEST_CASE("a store whose files were deleted or replaced acknowledges no duplicate and confirms nothing recalled") {
  for (const Misfortune &misfortune : misfortunes) {
    CAPTURE(misfortune.name);
    LockedHarness duplicates;
    CHECK(duplicates.commit_one(job_bytes("before", {1})).outcome == Outcome::stored);
    misfortune.befall(duplicates);
    CHECK(duplicates.code_of_commit({job_bytes("before", {1})}) == ErrorCode::store_unavailable);

    LockedHarness recalled; // by its caller, who then commits what is left: nothing
    CHECK(recalled.commit_one(job_bytes("before", {1})).outcome == Outcome::stored);
    misfortune.befall(recalled);
    CHECK(recalled.code_of_commit({}) == ErrorCode::store_unavailable);
  }
}

TEST_CASE("a new log is followed and its loss noticed") {
  for (const Misfortune &misfortune : misfortunes) {
    CAPTURE(misfortune.name);
    LockedHarness harness;
    begin_new_log(harness);
    CHECK(harness.commit_one(job_bytes("before", {1})).outcome == Outcome::stored);
    misfortune.befall(harness);
    CHECK(harness.code_of_commit({job_bytes("after", {1})}) == ErrorCode::store_unavailable);
  }
}

TEST_CASE("a flush that fails as its files are gone does not pass for damage") {
  const auto faults = std::make_shared<Faults>();
  LockedHarness harness(faulty_environment(faults));
  faults->speak(FaultKind::corruption);
  faults->fail_from(FaultAt::table_append, 1);
  begin_new_log(harness); // and flushes what the log before holds
  CHECK(eventually([&] { return faults->failures() > 0; }));
  fs::remove_all(harness.data / "db");
  CHECK(harness.code_of_commit({job_bytes("after", {1})}) == ErrorCode::store_unavailable);
}

TEST_CASE("no dead letter is redriven or purged in a directory that is gone") {
  LockedHarness harness;
  CHECK(harness.commit_one("bad").outcome == Outcome::invalid);
  const DeadLetterId id = harness.dead_letters().at(0).id;
  fs::rename(harness.data, harness.elsewhere);
  const auto redriven = harness.store->redrive(id, harness.handlers, kim);
  REQUIRE(!redriven.has_value());
  CHECK(redriven.error().code == ErrorCode::store_unavailable);
  const auto purged = harness.store->purge(id, kim);
  REQUIRE(!purged.has_value());
  CHECK(purged.error().code == ErrorCode::store_unavailable);
}

TEST_CASE("no queued job is begun or settled in a directory that is gone") {
  for (const bool begun : {false, true}) {
    CAPTURE(begun);
    LockedHarness harness;
    REQUIRE(harness.handlers.add_queued({.type = "slow"}).has_value());
    const QueuedType &type = *harness.handlers.queued("slow");
    CHECK(harness.commit_one(slow_job("job-1")).outcome == Outcome::accepted);
    const Bytes key = key_of("job-1");
    const FencingToken token{.boot = boot_count_of(harness.store->boot()), .count = 1};
    if (begun) REQUIRE(harness.store->queue().begin_receive(key, token, type).has_value());
    fs::remove_all(harness.data / "db");
    if (begun) {
      const auto settled = harness.store->queue().give_back(key, token);
      REQUIRE(!settled.has_value());
      CHECK(settled.error().code == ErrorCode::store_unavailable);
    } else {
      const auto received = harness.store->queue().begin_receive(key, token, type);
      REQUIRE(!received.has_value());
      CHECK(received.error().code == ErrorCode::store_unavailable);
    }
  }
}

TEST_CASE("a store is not opened where its lock is not") {
  LockedHarness harness;
  harness.close();
  replace_by_copy(harness.data, harness.elsewhere);
  const auto opened = harness.try_open();
  REQUIRE(!opened.has_value());
  CHECK(opened.error().code == ErrorCode::store_unavailable);
  fs::remove_all(harness.data);
  fs::rename(harness.elsewhere, harness.data);
  CHECK(harness.try_open().has_value());
}
