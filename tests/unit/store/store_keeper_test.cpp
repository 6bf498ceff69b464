// How the store is given out, taken away when it fails, and opened again. The disk under it fails by injection: a call
// is not executed and reports EIO.
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <system_error>
#include <thread>

#include "store/store_keeper.hpp"
#include "support/eventually.hpp"
#include "support/faulty_environment.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;
using onced::store::StoreKeeper;

namespace {

const Error failure{.code = ErrorCode::store_unavailable, .concerns = "db", .cause = "EIO", .remedy = "check it"};

// A keeper with its thread, on a directory of its own.
class Kept {
public:
  Kept() {
    options.directory = directory.path();
    options.environment = faulty_environment(faults);
    make();
  }
  // Anew, with other options.
  void make() {
    keeper = std::make_unique<StoreKeeper>(
        options, clock, random, log, [this] { ++changes; },
        [this](const Error &error) {
          given_up_for = error.code;
          gave_up = true;
        });
  }
  ~Kept() {
    keeper->stop();
    if (thread.joinable()) thread.join();
    keeper->close();
  }
  Kept(const Kept &) = delete;
  Kept &operator=(const Kept &) = delete;

  void open() {
    const auto opened = keeper->open();
    REQUIRE(opened.has_value());
    thread = std::thread([this] { keeper->run(); });
  }

  ScratchDirectory directory;
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  StoreOptions options;
  ManualClock clock;
  SeededRandom random{7};
  SilentLog log;
  std::atomic<int> changes{0};
  std::atomic<bool> gave_up{false};
  ErrorCode given_up_for = ErrorCode::internal; // read once gave_up
  std::unique_ptr<StoreKeeper> keeper;
  std::thread thread;
};

} // namespace

TEST_CASE("a store that was reported is given out no more and opened again once everybody has given it back") {
  Kept kept;
  kept.open();
  const BootId first = kept.keeper->state().boot;
  auto lease = kept.keeper->lease();
  REQUIRE(lease);
  kept.keeper->report(failure);
  CHECK_FALSE(kept.keeper->try_lease());
  const auto failed = kept.keeper->state();
  CHECK_FALSE(failed.available);
  REQUIRE(failed.cause.has_value());
  CHECK(failed.cause->cause == "EIO");
  CHECK(failed.since == kept.clock.now);
  CHECK(lease->boot() == first); // it lives as long as the lease

  lease = {};
  const auto again = kept.keeper->lease(); // waits for the next opening
  REQUIRE(again);
  CHECK(again->boot() != first);
  CHECK(kept.keeper->state().available);
  CHECK(kept.keeper->state().boot == again->boot());
  CHECK(kept.keeper->state().openings == 2);
  CHECK(eventually([&] { return kept.changes == 4; })); // opened, failed, opens, opened
}

TEST_CASE("a store that has failed for one thread and then for another is opened again only once") {
  Kept kept;
  kept.open();
  kept.keeper->report(failure);
  kept.keeper->report(failure);
  const auto again = kept.keeper->lease();
  REQUIRE(again);
  CHECK(kept.keeper->state().openings == 2);
}

TEST_CASE("the keeper tries again until the disk is well and tells of each cause") {
  Kept kept;
  kept.open();
  kept.faults->fail_from(FaultAt::log_append, 1); // so the boot count cannot be written
  kept.keeper->report(failure);
  CHECK(eventually([&] {
    const auto cause = kept.keeper->state().cause;
    return cause && cause->cause.find("injected") != std::string::npos;
  }));
  CHECK_FALSE(kept.keeper->try_lease());
  kept.faults->clear();
  CHECK(kept.keeper->lease());
  CHECK_FALSE(kept.gave_up);
}

TEST_CASE("while the store cannot be opened its rows are read and nobody says that they are durable") {
  Kept kept;
  kept.open();
  const Batch before({job_bytes("before", {1})});
  const Batch failing({job_bytes("failing", {1})});
  const auto row_of = [&](const std::string &id, bool durable) {
    bool found = false;
    const auto read = kept.keeper->read([&](const Store &store) {
      found = store.get(key_of_operation("sum", id)).value().has_value();
      CHECK(store.reads_durable() == durable);
    });
    CHECK(read.has_value());
    return found;
  };
  {
    const auto lease = kept.keeper->lease();
    REQUIRE(lease->commit(before.view(), built_in_handlers()).has_value());
    CHECK(row_of("before", true));
    kept.faults->fail_from(FaultAt::log_sync, 1);
    const auto failed = lease->commit(failing.view(), built_in_handlers());
    REQUIRE_FALSE(failed.has_value());
    kept.keeper->report(failed.error());
  }
  CHECK(eventually([&] { return kept.keeper->state().cause->cause.find("injected") != std::string::npos; }));
  CHECK(row_of("before", false));
  CHECK(row_of("failing", false)); // its sync failed, and it is there: it may be lost yet
  CHECK_FALSE(kept.keeper->state().available);
  kept.faults->clear();
  CHECK(kept.keeper->lease());
  CHECK(row_of("failing", true));
}

TEST_CASE("a store without room on its disk is told from one that has failed otherwise") {
  for (const int reason : {ENOSPC, EDQUOT, EFBIG, EIO, EROFS}) {
    Kept kept;
    kept.open();
    auto lease = kept.keeper->lease();
    Error error = failure;
    error.cause = "IO error: While appending to file: db/000004.log: " + std::generic_category().message(reason);
    kept.keeper->report(error);
    CHECK(kept.keeper->state().full == (reason != EIO && reason != EROFS));
    lease = {};
    CHECK(kept.keeper->lease());
    CHECK_FALSE(kept.keeper->state().full);
    CHECK_FALSE(kept.keeper->state().opening);
  }
}

TEST_CASE("a database that must not be opened is not tried again") {
  Kept kept;
  kept.open();
  {
    const auto lease = kept.keeper->lease();
    const Batch batch({job_bytes("job-1", {1, 2})});
    REQUIRE(lease->commit(batch.view(), built_in_handlers()).has_value());
    kept.keeper->report(failure);
    std::filesystem::remove(kept.directory.path() / "durable.mark");
  }
  const auto waiting = kept.keeper->lease();
  CHECK_FALSE(waiting);
  CHECK(kept.gave_up);
  CHECK(kept.given_up_for == ErrorCode::loss_suspected);
}

TEST_CASE("the keeper makes no database where its own is gone and goes on when it is put back") {
  for (const char *gone : {"data", "data/db"}) {
    CAPTURE(gone);
    Kept kept;
    kept.options.directory = kept.directory.path() / "data";
    const auto lock = DirectoryLock::take(kept.options.directory, DirectoryLock::Mode::exclusive);
    REQUIRE(lock.has_value());
    kept.options.lock = &*lock;
    kept.make();
    kept.open();
    const auto path = kept.directory.path() / gone;
    const auto moved = kept.directory.path() / "moved";
    {
      const auto lease = kept.keeper->lease();
      std::filesystem::rename(path, moved);
      if (path == kept.options.directory) std::filesystem::create_directory(path);
      const Batch batch({job_bytes("job-1", {1, 2})});
      const auto settled = lease->commit(batch.view(), built_in_handlers());
      REQUIRE(!settled.has_value());
      kept.keeper->report(settled.error());
    }
    const std::string cause = kept.keeper->state().cause->cause;
    if (path != kept.options.directory) { // the mark is there, and says that there were rows
      CHECK_FALSE(kept.keeper->lease());
      CHECK(kept.given_up_for == ErrorCode::loss_suspected);
      CHECK_FALSE(std::filesystem::exists(path));
      continue;
    }
    CHECK(cause.find("deleted or replaced") != std::string::npos);
    CHECK_FALSE(kept.keeper->try_lease());
    CHECK(std::filesystem::is_empty(path));
    std::filesystem::remove(path);
    std::filesystem::rename(moved, path);
    CHECK(kept.keeper->lease());
    CHECK_FALSE(kept.gave_up);
  }
}

TEST_CASE("the keeper does not go on with a database that was put in the place of its own") {
  Kept kept;
  kept.open();
  const auto database = kept.directory.path() / "db";
  const auto moved = kept.directory.path() / "moved";
  {
    const auto lease = kept.keeper->lease();
    kept.keeper->report(failure);
    std::filesystem::rename(database, moved);
    std::filesystem::copy(moved, database, std::filesystem::copy_options::recursive);
  }
  CHECK_FALSE(kept.keeper->lease());
  CHECK(kept.gave_up);
  CHECK(kept.given_up_for == ErrorCode::loss_suspected);
}

TEST_CASE("who waits for a store is released when the keeper stops") {
  Kept kept;
  kept.open();
  kept.faults->fail_from(FaultAt::log_append, 1);
  kept.keeper->report(failure);
  std::thread stopper([&] { kept.keeper->stop(); });
  CHECK_FALSE(kept.keeper->lease());
  stopper.join();
}
