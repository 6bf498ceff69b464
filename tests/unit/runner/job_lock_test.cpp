// Verifies the locks of jobs' files as one process sees them. Not verified here: that commands and what they start hold
// them (command_test.cpp).
#include "runner/job_lock.hpp"

#include <atomic>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"
#include "support/file_content.hpp"

using onced::ErrorCode;
using onced::ScratchDirectory;
using onced::runner::JobLocks;
using onced::runner::lock_is_free;
using onced::runner::remove_lock;
using onced::runner::take_lock;
using onced::testing::files_in;

TEST_CASE("a lock is free until it is taken and again once it is given up") {
  const ScratchDirectory directory;
  const auto file = directory.path() / "job";
  CHECK(lock_is_free(file).value());
  CHECK_FALSE(std::filesystem::exists(file));
  {
    const auto lock = take_lock(file);
    REQUIRE(lock.value().has_value());
    CHECK_FALSE(lock_is_free(file).value());
    CHECK_FALSE(take_lock(file).value().has_value());
  }
  CHECK(lock_is_free(file).value());
  CHECK(take_lock(file).value().has_value());
}

TEST_CASE("a file is removed only while nobody holds its lock") {
  const ScratchDirectory directory;
  const auto file = directory.path() / "job";
  {
    const auto lock = take_lock(file);
    CHECK_FALSE(remove_lock(file).value());
    CHECK_FALSE(lock_is_free(file).value());
  }
  CHECK(remove_lock(file).value());
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(remove_lock(file).value());
}

TEST_CASE("a folder that is not there is an error for who takes a lock in it") {
  const ScratchDirectory directory;
  const auto file = directory.path() / "absent" / "job";
  const auto lock = take_lock(file);
  REQUIRE_FALSE(lock.has_value());
  CHECK(lock.error().code == ErrorCode::not_found);
  CHECK(lock_is_free(file).value());
}

TEST_CASE("a lock that was taken while its file is being removed is seen by who asks") {
  const ScratchDirectory directory;
  const auto file = directory.path() / "job";
  std::atomic<bool> over{false};
  std::thread remover([&] {
    while (!over)
      static_cast<void>(remove_lock(file));
  });
  int unseen = 0;
  for (int taken = 0; taken < 2000;) {
    const auto lock = take_lock(file);
    if (!lock || !*lock) continue;
    ++taken;
    unseen += lock_is_free(file).value() ? 1 : 0;
  }
  over = true;
  remover.join();
  CHECK(unseen == 0);
}

TEST_CASE("the folder of all locks keeps the files that are held and loses each once it is let go") {
  const ScratchDirectory directory;
  JobLocks locks(directory.path() / "locks");
  REQUIRE(locks.prepare().has_value());
  std::vector<std::optional<onced::Descriptor>> held;
  for (int job = 0; job < 300; ++job) {
    const auto file = locks.file_of("job-" + std::to_string(job));
    auto lock = take_lock(file).value();
    REQUIRE(lock.has_value());
    if (job < 10) { // by what its command has started
      held.push_back(std::move(lock));
    } else {
      lock.reset();
    }
    locks.remove(file);
    CHECK(files_in(directory.path() / "locks") <= 10);
  }
  CHECK(files_in(directory.path() / "locks") == 10);
  held.clear();
  for (int job = 300; job < 305; ++job) { // no command was started
    CHECK(files_in(directory.path() / "locks") == 10 - 2 * (job - 300));
    locks.remove(locks.file_of("job-" + std::to_string(job)));
  }
  CHECK(files_in(directory.path() / "locks") == 0);
}

TEST_CASE("what an earlier process has left in the folder goes at the start or once it is let go") {
  const ScratchDirectory directory;
  const auto old_lock = take_lock(directory.path() / "held");
  { const auto left = take_lock(directory.path() / "left"); }
  JobLocks locks(directory.path());
  REQUIRE(locks.prepare().has_value());
  CHECK(files_in(directory.path()) == 1);
  CHECK_FALSE(lock_is_free(directory.path() / "held").value());
}
