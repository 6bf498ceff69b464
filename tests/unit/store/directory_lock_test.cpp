// The kernel lock on the data directory, against another process and within this one.
#include <doctest/doctest.h>

#include <fstream>

#include <sys/stat.h>

#include "onced/store.hpp"
#include "support/scene.hpp"
#include "support/store_harness.hpp"
#include "support/temp_directory.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

using Mode = DirectoryLock::Mode;

} // namespace

TEST_CASE("scene: hold the lock until killed" * doctest::skip()) {
  const std::filesystem::path directory = scene_parameter("SCENE_DIRECTORY");
  if (directory.empty()) return;
  const auto lock =
      DirectoryLock::take(directory, scene_parameter("SCENE_MODE") == "shared" ? Mode::shared : Mode::exclusive);
  REQUIRE(lock.has_value());
  std::ofstream(directory / "held") << "held";
  for (;;)
    ::pause();
}

TEST_CASE("a directory that another process holds is refused with that process named") {
  const TempDirectory directory;
  Scene holder("scene: hold the lock until killed",
               {{"SCENE_DIRECTORY", directory.path()}, {"SCENE_MODE", "exclusive"}});
  REQUIRE(holder.wait_for(directory.path() / "held"));
  const std::string process = "process " + std::to_string(holder.process());
  for (const Mode mode : {Mode::exclusive, Mode::shared}) {
    const auto refused = DirectoryLock::take(directory.path(), mode);
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::locked);
    CHECK(refused.error().concerns == directory.path().string());
    CHECK(refused.error().cause.find(process) != std::string::npos);
    CHECK(!refused.error().remedy.empty());
  }
  holder.kill_now();
  CHECK(was_killed(holder.wait()));
  CHECK(DirectoryLock::take(directory.path(), Mode::exclusive).has_value());
}

TEST_CASE("two readers share a directory and keep a worker out until they have ended") {
  const TempDirectory directory;
  { const auto made = DirectoryLock::take(directory.path(), Mode::exclusive); }
  Scene reader("scene: hold the lock until killed", {{"SCENE_DIRECTORY", directory.path()}, {"SCENE_MODE", "shared"}});
  REQUIRE(reader.wait_for(directory.path() / "held"));
  CHECK(DirectoryLock::take(directory.path(), Mode::shared).has_value());
  const auto refused = DirectoryLock::take(directory.path(), Mode::exclusive);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == ErrorCode::locked);
  CHECK(refused.error().cause.find("reading") != std::string::npos);
  reader.kill_now();
  CHECK(was_killed(reader.wait()));
  CHECK(DirectoryLock::take(directory.path(), Mode::exclusive).has_value());
}

TEST_CASE("a lock ends with its object and moves with it") {
  const TempDirectory directory;
  auto first = DirectoryLock::take(directory.path(), Mode::exclusive);
  REQUIRE(first.has_value());
  {
    const DirectoryLock moved = std::move(*first);
    CHECK(!DirectoryLock::take(directory.path(), Mode::exclusive).has_value());
  }
  CHECK(DirectoryLock::take(directory.path(), Mode::exclusive).has_value());
}

TEST_CASE("taking it for a worker makes the directory and its parents with mode 0700") {
  const TempDirectory parent;
  const auto directory = parent.path() / "a" / "b";
  const auto lock = DirectoryLock::take(directory, Mode::exclusive);
  REQUIRE(lock.has_value());
  struct stat info {};
  REQUIRE(::stat(directory.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0700);
  std::ifstream file(directory / "onced.lock");
  int holder = 0;
  file >> holder;
  CHECK(holder == ::getpid());
}

TEST_CASE("a reader makes nothing and says what is not there") {
  const TempDirectory parent;
  const auto directory = parent.path() / "absent";
  const auto refused = DirectoryLock::take(directory, Mode::shared);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == ErrorCode::not_found);
  CHECK(!std::filesystem::exists(directory));
}

TEST_CASE("a path that cannot be a directory is refused") {
  const TempDirectory parent;
  std::ofstream(parent.path() / "file") << "x";
  const auto refused = DirectoryLock::take(parent.path() / "file", Mode::exclusive);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code != ErrorCode::locked);
}
