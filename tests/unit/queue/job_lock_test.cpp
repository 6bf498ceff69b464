// Verifies the locks of jobs' files as one process sees them. Not verified here: that commands and what they start hold
// them (command_test.cpp).
#include "queue/job_lock.hpp"

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include <doctest/doctest.h>

#include "support/temp_directory.hpp"

using onced::ErrorCode;
using onced::queue::lock_is_free;
using onced::queue::remove_lock;
using onced::queue::take_lock;
using onced::testing::TempDirectory;

TEST_CASE("a lock is free until it is taken and again once it is given up") {
  const TempDirectory directory;
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
  const TempDirectory directory;
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
  const TempDirectory directory;
  const auto file = directory.path() / "absent" / "job";
  const auto lock = take_lock(file);
  REQUIRE_FALSE(lock.has_value());
  CHECK(lock.error().code == ErrorCode::not_found);
  CHECK(lock_is_free(file).value());
}

TEST_CASE("a lock that was taken while its file is being removed is seen by who asks") {
  const TempDirectory directory;
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
