#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/utilities/transaction_db.h>

#include "onced/error.hpp"
#include "onced/store.hpp"
#include "store/durable_mark.hpp"
#include "store/environment.hpp"

namespace onced::store {

// A RocksDB status as an Error about `concerns`. Corruption is `corrupt`, a foreign lock `locked`, all else
// `store_unavailable`.
[[nodiscard]] Error status_error(const rocksdb::Status &status, const std::string &concerns);

// The same of a write: of one of which nobody knows whether it was made, it is never merely `corrupt`.
[[nodiscard]] Error write_error(const rocksdb::Status &status, const std::string &concerns);

// For what must be on stable storage in every mode when the write returns.
[[nodiscard]] rocksdb::WriteOptions synced_write();

// True where the same transaction may be tried again: it lost a race, and nothing of it was written.
[[nodiscard]] bool is_retryable(const rocksdb::Status &status);

// For reading every row once: a scan must not push out of the cache what the worker uses.
[[nodiscard]] rocksdb::ReadOptions scan_options();

// Whether a background error was reported. RocksDB goes read-only then; a worker must not go on with that database.
class Health;

// The open RocksDB database, its column families and its mark. What the rows mean is not its business.
class Database {
public:
  // Opens or creates DIRECTORY/db and holds it against the mark. A refused opening has changed nothing, so it can be
  // repeated, or the missing files put back. Errors: as Store::open.
  [[nodiscard]] static Result<std::unique_ptr<Database>> open(const StoreOptions &options);

  ~Database();
  Database(const Database &) = delete;
  Database &operator=(const Database &) = delete;

  [[nodiscard]] rocksdb::DB *db() const { return db_.get(); }
  // Null when read-only.
  [[nodiscard]] rocksdb::TransactionDB *transactions() const { return transactions_; }
  [[nodiscard]] rocksdb::ColumnFamilyHandle *operations() const { return families_[1]; }
  [[nodiscard]] rocksdb::ColumnFamilyHandle *dead_letters() const { return families_[2]; }
  [[nodiscard]] rocksdb::ColumnFamilyHandle *meta() const { return families_[3]; }
  // Null when read-only on a database of before there were queued jobs.
  [[nodiscard]] rocksdb::ColumnFamilyHandle *queue() const { return families_.size() > 4 ? families_[4] : nullptr; }
  // Null when read-only on a database of before there were messages to send on.
  [[nodiscard]] rocksdb::ColumnFamilyHandle *relay() const { return families_.size() > 5 ? families_[5] : nullptr; }
  [[nodiscard]] std::string path() const { return path_.string(); }

  // Raises the mark to the last visible write. Call after a synced write: with every writer synced, visible is durable.
  void mark_durable() { mark_.advance(db_->GetLatestSequenceNumber()); }

  // Whether the mark covers all that can be read.
  [[nodiscard]] bool mark_covers_all() const { return db_->GetLatestSequenceNumber() <= mark_.sequence(); }

  // Nothing, or what RocksDB reported in the background.
  [[nodiscard]] Result<void> health() const;

private:
  Database(std::filesystem::path path, bool read_only, std::shared_ptr<StorageEnvironment> environment,
           DurableMark mark, std::shared_ptr<Health> health);
  // Whether rows are to be read and written, or it is only looked at whether they are there.
  enum class Purpose : std::uint8_t { use, look };

  [[nodiscard]] static Result<std::unique_ptr<Database>> open_for(Purpose purpose, const StoreOptions &options);
  [[nodiscard]] static Result<void> look_first(const StoreOptions &options);
  [[nodiscard]] static Result<void> keep_logs(const std::filesystem::path &path, DurableMark &mark);
  [[nodiscard]] std::optional<std::string> suspected_loss() const;
  [[nodiscard]] Result<void> open_files(Purpose purpose, const StoreOptions &options);

  std::filesystem::path path_;
  bool read_only_;
  std::shared_ptr<StorageEnvironment> environment_;
  DurableMark mark_;
  std::shared_ptr<Health> health_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::TransactionDB *transactions_ = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle *> families_;
};

} // namespace onced::store
