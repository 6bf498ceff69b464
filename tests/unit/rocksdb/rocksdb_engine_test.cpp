// The embedded engine keeps the contract of engines.
#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"
#include "onced/random.hpp"
#include "rocksdb/rocksdb_engine.hpp"
#include "support/eventually.hpp"
#include "support/faulty_environment.hpp"
#include "unit/engine/contract.hpp"

namespace onced::testing {
namespace {

using Files = std::map<std::filesystem::path, std::pair<std::uintmax_t, std::filesystem::file_time_type>>;

Files files_in_all(const std::filesystem::path &folder) {
  Files files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path()] = {entry.file_size(), entry.last_write_time()};
  }
  return files;
}

// False: RocksDB has changed a file meanwhile, in the background.
bool copied_at_one_moment(const std::filesystem::path &from, const std::filesystem::path &to) {
  try {
    const Files before = files_in_all(from);
    for (const auto &entry : std::filesystem::directory_iterator(to))
      std::filesystem::remove_all(entry.path());
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
    return files_in_all(from) == before;
  } catch (const std::filesystem::filesystem_error &) {
    return false;
  }
}

class RocksdbSubject final : public Subject {
public:
  RocksdbSubject() {
    directories_.push_back(std::make_unique<ScratchDirectory>());
    open();
  }

  [[nodiscard]] engine::Engine &engine() override { return *engines_.back(); }
  [[nodiscard]] std::uint64_t boot() const override { return boot_; }
  void reopen() override {
    engines_.pop_back();
    open();
  }
  // What a process leaves that ends now is what its files hold now.
  void crash() override {
    auto next = std::make_unique<ScratchDirectory>();
    REQUIRE(eventually([&] { return copied_at_one_moment(directories_.back()->path(), next->path()); }));
    directories_.push_back(std::move(next));
    faults_->clear();
    open();
  }
  // A commit that could not be sent, or has lost a race, is not made so from outside.
  [[nodiscard]] bool fail_next_commit(CommitFault fault) override {
    if (fault == CommitFault::unknown_written) faults_->fail_from(FaultAt::log_sync, 1);
    if (fault == CommitFault::unknown_lost) faults_->fail_from(FaultAt::log_append, 1);
    return fault == CommitFault::unknown_written || fault == CommitFault::unknown_lost;
  }
  [[nodiscard]] bool damage(engine::Family, BytesView) override { return false; } // tests/damage does
  [[nodiscard]] bool hold_visible_commits() override { return false; }            // visible is stable
  void release_commits() override {}
  [[nodiscard]] unsigned random_steps() const override { return 4'000; }

private:
  void open() {
    StoreOptions options;
    options.directory = directories_.back()->path();
    options.environment = faulty_environment(faults_);
    auto engine = rocks::open_engine(options, clock_);
    REQUIRE_MESSAGE(engine.has_value(), describe(engine.error()));
    engines_.push_back(std::move(*engine));
    const auto boot = engines_.back()->begin_boot(0, random_);
    REQUIRE_MESSAGE(boot.has_value(), describe(boot.error()));
    boot_ = *boot;
  }

  SystemClock clock_;
  SeededRandom random_{1};
  std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::vector<std::unique_ptr<ScratchDirectory>> directories_; // the last one is in use
  std::vector<std::unique_ptr<engine::Engine>> engines_;       // the last one is alive
  std::uint64_t boot_ = 0;
};

TEST_CASE("the embedded engine keeps the contract") {
  run_contract([] { return std::make_unique<RocksdbSubject>(); });
}

} // namespace
} // namespace onced::testing
