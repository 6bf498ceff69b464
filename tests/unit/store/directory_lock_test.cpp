// The kernel lock on the data directory, against another process and within this one.
#include <doctest/doctest.h>

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "base/scratch_directory.hpp"
#include "onced/store.hpp"
#include "support/scene.hpp"
#include "support/store_harness.hpp"

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
  const ScratchDirectory directory;
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
  CHECK(holder.wait().is_kill());
  CHECK(DirectoryLock::take(directory.path(), Mode::exclusive).has_value());
}

TEST_CASE("two readers share a directory and keep a worker out until they have ended") {
  const ScratchDirectory directory;
  { const auto made = DirectoryLock::take(directory.path(), Mode::exclusive); }
  Scene reader("scene: hold the lock until killed", {{"SCENE_DIRECTORY", directory.path()}, {"SCENE_MODE", "shared"}});
  REQUIRE(reader.wait_for(directory.path() / "held"));
  CHECK(DirectoryLock::take(directory.path(), Mode::shared).has_value());
  const auto refused = DirectoryLock::take(directory.path(), Mode::exclusive);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == ErrorCode::locked);
  CHECK(refused.error().cause.find("reading") != std::string::npos);
  reader.kill_now();
  CHECK(reader.wait().is_kill());
  CHECK(DirectoryLock::take(directory.path(), Mode::exclusive).has_value());
}

TEST_CASE("a lock ends with its object and moves with it") {
  const ScratchDirectory directory;
  auto first = DirectoryLock::take(directory.path(), Mode::exclusive);
  REQUIRE(first.has_value());
  {
    const DirectoryLock moved = std::move(*first);
    CHECK(!DirectoryLock::take(directory.path(), Mode::exclusive).has_value());
  }
  CHECK(DirectoryLock::take(directory.path(), Mode::exclusive).has_value());
}

TEST_CASE("taking it for a worker makes the directory and its parents with mode 0700") {
  const ScratchDirectory parent;
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
  const ScratchDirectory parent;
  const auto directory = parent.path() / "absent";
  const auto refused = DirectoryLock::take(directory, Mode::shared);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == ErrorCode::not_found);
  CHECK(!std::filesystem::exists(directory));
}

TEST_CASE("a path that cannot be a directory is refused") {
  const ScratchDirectory parent;
  std::ofstream(parent.path() / "file") << "x";
  const auto refused = DirectoryLock::take(parent.path() / "file", Mode::exclusive);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code != ErrorCode::locked);
}

TEST_CASE("a directory that others may write is refused with the command that makes it right") {
  const ScratchDirectory parent;
  for (const mode_t mode : {0770U, 0707U, 0777U, 01777U, 02770U}) {
    CAPTURE(mode);
    const auto directory = parent.path() / std::to_string(mode);
    std::filesystem::create_directory(directory);
    REQUIRE(::chmod(directory.c_str(), mode) == 0);
    const auto refused = DirectoryLock::take(directory, Mode::exclusive);
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::usage);
    CHECK(refused.error().remedy.find("chmod go-w " + directory.string()) != std::string::npos);
    CHECK(std::filesystem::is_empty(directory));

    const auto below = DirectoryLock::take(directory / "onced", Mode::exclusive); // what the remedy names for a volume
    REQUIRE(below.has_value());
    struct stat info {};
    REQUIRE(::stat((directory / "onced").c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
    REQUIRE(::chmod(directory.c_str(), 0755) == 0);
    CHECK(DirectoryLock::take(directory, Mode::exclusive).has_value());
  }
}

TEST_CASE("a directory of another user is refused with the command that makes it right") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: giving a directory to another user takes root");
    return;
  }
  const ScratchDirectory directory;
  REQUIRE(::chown(directory.path().c_str(), 65534, 65534) == 0);
  const auto refused = DirectoryLock::take(directory.path(), Mode::exclusive);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == ErrorCode::usage);
  CHECK(refused.error().cause == "belongs to user 65534, and this is user 0");
  CHECK(refused.error().remedy.find("chown -R 0 " + directory.path().string()) != std::string::npos);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("a link in the directory is refused wherever it points and is not followed") {
  for (const std::string name :
       {"onced.lock", "durable.mark", "durable.mark.new", "rocksdb.log", "control.sock", "running", "db",
        "handler-locks", "db/LOCK", "db/CURRENT", "db/000004.log", "handler-locks/lock", "operators/control.sock"}) {
    for (const Mode mode : {Mode::exclusive, Mode::shared}) {
      CAPTURE(name);
      const ScratchDirectory directory;
      const ScratchDirectory outside;
      { const auto made = DirectoryLock::take(directory.path(), Mode::exclusive); }
      const auto target = outside.path() / "target";
      std::ofstream(target) << "precious";
      std::filesystem::create_directories((directory.path() / name).parent_path());
      std::filesystem::remove(directory.path() / name);
      std::filesystem::create_symlink(target, directory.path() / name);
      const auto refused = DirectoryLock::take(directory.path(), mode);
      REQUIRE(!refused.has_value());
      CHECK(refused.error().code == ErrorCode::usage);
      CHECK(refused.error().concerns == (directory.path() / name).string());
      std::string content;
      std::getline(std::ifstream(target), content);
      CHECK(content == "precious");
    }
  }
}

TEST_CASE("what is neither a file nor a folder is refused and a pipe is not waited for") {
  for (const char *name : {"onced.lock", "durable.mark", "rocksdb.log", "db/LOCK"}) {
    CAPTURE(name);
    const ScratchDirectory directory;
    std::filesystem::create_directories((directory.path() / name).parent_path());
    REQUIRE(::mkfifo((directory.path() / name).c_str(), 0600) == 0);
    const auto refused = DirectoryLock::take(directory.path(), Mode::exclusive);
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::usage);
  }
}

TEST_CASE("a file where the control socket goes is refused and stays") {
  const ScratchDirectory directory;
  std::ofstream(directory.path() / "control.sock") << "precious";
  const auto refused = DirectoryLock::take(directory.path(), Mode::exclusive);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == ErrorCode::usage);
  CHECK(std::filesystem::file_size(directory.path() / "control.sock") == 8);
}

TEST_CASE("a directory may be named by a link which is resolved once") {
  const ScratchDirectory parent;
  std::filesystem::create_directory(parent.path() / "first");
  std::filesystem::create_directory(parent.path() / "second");
  REQUIRE(::chmod((parent.path() / "first").c_str(), 0700) == 0);
  std::filesystem::create_directory_symlink("first", parent.path() / "link");
  const auto lock = DirectoryLock::take(parent.path() / "link", Mode::exclusive);
  REQUIRE(lock.has_value());
  CHECK(lock->directory() == std::filesystem::canonical(parent.path()) / "first");
  std::filesystem::remove(parent.path() / "link");
  std::filesystem::create_directory_symlink("second", parent.path() / "link");
  CHECK(lock->check().has_value());
}
