#include "base/scratch_directory.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;
using onced::ScratchDirectory;

} // namespace

TEST_CASE("a scratch directory is new and empty and goes with everything in it") {
  fs::path path;
  {
    const ScratchDirectory directory;
    path = directory.path();
    CHECK(fs::is_empty(path));
    CHECK(fs::status(path).permissions() == fs::perms::owner_all);
    fs::create_directory(path / "folder");
    std::ofstream(path / "folder" / "file") << "content";
    CHECK(ScratchDirectory(path).path().parent_path() == path);
    CHECK(ScratchDirectory().path() != path);
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("a scratch directory that is moved or kept or borrowed is removed by its last owner alone") {
  const ScratchDirectory parent;
  std::optional<ScratchDirectory> first(std::in_place, parent.path());
  std::optional<ScratchDirectory> second(std::move(*first));
  first.reset();
  const fs::path path = second->path();
  CHECK(fs::exists(path));
  { const ScratchDirectory borrowed = ScratchDirectory::borrowed(path); }
  CHECK(fs::exists(path));
  second->keep();
  second.reset();
  CHECK(fs::exists(path));
}

TEST_CASE("where no directory can be made the error names the place and what to do") {
  const ScratchDirectory parent;
  const fs::path absent = parent.path() / "absent";
  const auto made = ScratchDirectory::make(absent);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == onced::ErrorCode::not_found);
  CHECK(made.error().concerns == absent.string());
  CHECK(made.error().cause == "no directory can be made there: No such file or directory");
  CHECK(made.error().remedy == "give a directory that may be written to");
  CHECK_THROWS_AS(ScratchDirectory{absent}, std::runtime_error);
  std::ofstream(parent.path() / "file") << "";
  CHECK(ScratchDirectory::make(parent.path() / "file").error().code == onced::ErrorCode::store_unavailable);
}
