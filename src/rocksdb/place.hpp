#pragma once

#include <filesystem>
#include <mutex>

#include <rocksdb/listener.h>

#include "base/inode.hpp"
#include "onced/error.hpp"
#include "onced/store.hpp"

namespace onced::rocks {

// Where an open database lies. What is synced into files that were deleted or replaced under the process is lost, since
// the next opening looks at other files: so this is checked after each sync, before anything is acknowledged. RocksDB
// tells of each new log, since it is a listener of the database. Any thread.
class Place final : public rocksdb::EventListener {
public:
  // `lock` must outlive it; null: nobody holds one.
  Place(std::filesystem::path database, const DirectoryLock *lock) : database_(std::move(database)), lock_(lock) {}

  // The database has been opened: its folder and its newest log are those that are there now.
  void settle();

  // Whether the directory, its lock file, the folder of the database and its newest log are still what was opened, at
  // their paths. Four system calls. Errors: `store_unavailable`.
  [[nodiscard]] Result<void> check() const;

  // The next commit goes into a new log: the thread that tells this is the one that will write there.
  void OnMemTableSealed(const rocksdb::MemTableInfo &) override { follow_log(); }

private:
  void follow_log();

  std::filesystem::path database_;
  const DirectoryLock *lock_;
  mutable std::mutex mutex_; // guards the rest
  std::optional<Inode> folder_;
  std::filesystem::path log_path_;
  std::optional<Inode> log_; // nothing: there was none
};

} // namespace onced::rocks
