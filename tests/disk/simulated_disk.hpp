#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "onced/random.hpp"
#include "rocksdb/environment.hpp"

namespace onced::testing {

// One change of the disk: what a death, a power cut or a failure can come before, or in the middle of.
enum class StepKind : std::uint8_t {
  none,
  create,
  append,
  sync,
  truncate,
  rename,
  remove,
  make_directory,
  sync_directory
};

[[nodiscard]] std::string_view name_of(StepKind kind);

enum class Trouble : std::uint8_t {
  none,
  death,       // SIGKILL; the page cache stays
  power_cut,   // what was not synced is lost, files and names; then SIGKILL
  io_error,    // EIO. A failed sync keeps or loses what it was to write
  disk_full,   // ENOSPC for an append or a new file
  short_write, // a part of an append is written, and it fails with ENOSPC
};

struct DiskPlan {
  Trouble trouble = Trouble::none;
  std::uint64_t step = 0; // at which it comes, from 1
  std::uint64_t seed = 1; // of what is left to chance: how much of an append, which unsynced bytes and names
  bool lasting = false;   // io_error, disk_full: every later step fails too, until the disk is healed
  bool garbage = false;   // power_cut: unsynced bytes that stay may be others than were written
};

// What a run leaves behind. It lies in memory that outlives the process, so it holds no pointers.
struct DiskDiary {
  static constexpr std::size_t steps_max = 8192;
  static constexpr std::size_t files_max = 64;

  // A file whose end was written and not synced when the process died.
  struct Unsynced {
    std::array<char, 64> name{}; // below the root
    std::uint64_t synced = 0;    // bytes
  };

  std::uint64_t steps = 0;
  bool struck = false; // the trouble has come
  std::array<char, 240> struck_at{};
  std::array<StepKind, steps_max> kinds{}; // of each step, from 1
  std::array<Unsynced, files_max> unsynced{};
};

// A disk in a directory, under RocksDB and under our own syncs (fsync and fdatasync of this program ask it). Every
// change is written through at once, one at a time, and the disk remembers what is not synced: the end of each file,
// the names in each directory. Nothing is really synced, which makes it fast. One a process; it outlives its
// environment.
class SimulatedDisk {
public:
  // The disk is below `root`, whose own name is durable. `graveyard` is a directory of the same file system for files
  // whose removal is not synced.
  SimulatedDisk(std::filesystem::path root, std::filesystem::path graveyard, const DiskPlan &plan, DiskDiary &diary);
  ~SimulatedDisk();
  SimulatedDisk(const SimulatedDisk &) = delete;
  SimulatedDisk &operator=(const SimulatedDisk &) = delete;

  [[nodiscard]] std::shared_ptr<StorageEnvironment> environment();

  // Waits until RocksDB's background threads have nothing to do, so that a run has the same steps every time. Not once
  // trouble has come: they may try again as long as the disk fails. Throws after half a minute.
  void await_quiet();

  // From now on the disk does not fail.
  void heal();

  // Takes over what the process before has written and not synced.
  void remember(const DiskDiary &before);

  // Cuts the power now, whatever the plan.
  [[noreturn]] void cut();

  // As fsync(2), for our own files.
  int sync_descriptor(int descriptor);

private:
  friend class SimulatedFile;
  friend class SimulatedDirectory;
  friend class SimulatedFileSystem;
  friend class CountedEnvironment;

  struct File {
    std::filesystem::path path; // now; in the graveyard once removed
    std::uint64_t written = 0;
    std::uint64_t synced = 0;
  };
  // A change of the names of a directory that is not synced, and how to undo it.
  struct NameChange {
    std::filesystem::path path;
    std::filesystem::path from;   // renamed: its name before. Empty: created or removed
    std::filesystem::path buried; // what lay at `path` before. Empty: nothing
  };
  enum class Effect : std::uint8_t { proceed, fail, tear };

  [[nodiscard]] bool is_struck();

  // All of these with mutex_ held.
  [[nodiscard]] Effect begin(StepKind kind, const std::filesystem::path &path);
  [[nodiscard]] bool strikes(StepKind kind) const;
  [[nodiscard]] rocksdb::IOStatus error() const;
  [[noreturn]] void end();
  void note_unsynced();
  void cut_power();
  void lose_bytes(const File &file);
  void lose_names(const std::filesystem::path &directory);
  void lose_changes(std::vector<NameChange> &changes);
  void let_mark_lag(const std::filesystem::path &path);
  [[nodiscard]] std::uint64_t part_of(std::uint64_t whole);
  [[nodiscard]] std::filesystem::path bury(const std::filesystem::path &path);
  void settle_names(const std::filesystem::path &directory);

  using Write = std::function<rocksdb::IOStatus(const rocksdb::Slice &)>;
  using Act = std::function<rocksdb::IOStatus()>;
  rocksdb::IOStatus append(File &file, const rocksdb::Slice &data, const Write &write);
  rocksdb::IOStatus sync(File &file);
  rocksdb::IOStatus truncate(File &file, std::uint64_t size, const Act &act);
  rocksdb::IOStatus create(const std::filesystem::path &path, std::shared_ptr<File> &file, const Act &act);
  rocksdb::IOStatus rename(const std::filesystem::path &from, const std::filesystem::path &to, const Act &act);
  rocksdb::IOStatus remove(const std::filesystem::path &path, const Act &act);
  rocksdb::IOStatus make_directory(const std::filesystem::path &path, const Act &act);
  rocksdb::IOStatus sync_directory(const std::filesystem::path &path);

  const std::filesystem::path root_;
  const std::filesystem::path graveyard_;
  const DiskPlan plan_;
  DiskDiary &diary_;

  std::mutex mutex_; // guards the next
  SeededRandom chance_;
  bool healed_ = false;
  std::uint64_t buried_ = 0;
  std::map<std::filesystem::path, std::shared_ptr<File>> files_;
  std::map<std::filesystem::path, std::vector<NameChange>> changes_; // by directory
  std::map<std::filesystem::path, std::set<std::string>> durable_names_;

  std::mutex work_mutex_; // guards the next
  std::condition_variable work_done_;
  std::uint64_t work_ = 0; // of the background, waiting or running
};

} // namespace onced::testing
