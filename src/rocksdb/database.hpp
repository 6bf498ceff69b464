#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/utilities/transaction_db.h>

#include "engine/engine.hpp"
#include "onced/error.hpp"
#include "rocksdb/database_kind.hpp"
#include "rocksdb/durable_mark.hpp"
#include "rocksdb/environment.hpp"
#include "rocksdb/loss_check.hpp"
#include "rocksdb/place.hpp"
#include "rocksdb/status.hpp"

namespace onced::rocks {

// That the making of a database was cut short before its first boot.
[[nodiscard]] Error never_begun(const std::filesystem::path &path);

// The open RocksDB database, its column families and its mark. What the rows mean is not its business.
class Database {
public:
  // Opens or creates DIRECTORY/db and holds it against the mark. A refused opening has changed nothing, so it can be
  // repeated, or the missing files put back. Errors: as Store::open.
  [[nodiscard]] static Result<std::unique_ptr<Database>> open(const DatabaseOptions &options);

  ~Database();
  Database(const Database &) = delete;
  Database &operator=(const Database &) = delete;

  [[nodiscard]] rocksdb::DB *db() const { return db_.get(); }
  // Null when read-only.
  [[nodiscard]] rocksdb::TransactionDB *transactions() const { return transactions_; }
  [[nodiscard]] rocksdb::ColumnFamilyHandle *family(engine::Family family) const {
    return families_.at(kind_.family_at[static_cast<std::size_t>(family)]);
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

  // What the database says of itself, as the opening found it.
  [[nodiscard]] const Claims &claims() const { return claims_; }
  // The highest boot that the mark knew at the opening.
  [[nodiscard]] std::uint64_t marked_boot() const { return check_->known().boot; }

  // Before the first batch of a boot: the mark says durably that it has begun. Nothing else may be written meanwhile.
  // Errors: `store_unavailable`.
  [[nodiscard]] Result<void> begin_boot(std::uint64_t boot);
  // After that batch, which was synced, and with which the database has this identity: so has the mark, durably.
  [[nodiscard]] Result<void> boot_begun(const StoreIdentity &identity);

  // After a synced commit: raises the mark to it. Of a batch its first row is enough, since a log's record is read
  // whole or not at all; and what others have written since need not be synced.
  void mark_durable(rocksdb::Transaction &committed) { mark_->advance(committed.GetId()); }
  // Puts all that was written on stable storage and marks it. Nothing may be written meanwhile.
  void mark_all_durable();

  // Whether the mark covers all that can be read.
  [[nodiscard]] bool mark_covers_all() const {
    const std::uint64_t last = db_->GetLatestSequenceNumber();
    const std::uint64_t synced = mark_ ? mark_->sequence() : 0;
    return last <= synced || check_->ends_with(last, synced);
  }

  // Whether what was synced is where the next opening will look for it. Call before anything is acknowledged.
  [[nodiscard]] Result<void> check_place() const { return place_->check(); }

  // What RocksDB says of a read, and of a write: of one of which nobody knows whether it was made, it is never merely
  // `corrupt`.
  [[nodiscard]] Error error_of(const rocksdb::Status &status) const;
  [[nodiscard]] Error error_of_write(const rocksdb::Status &status) const;

  // Nothing, or what RocksDB reported in the background.
  [[nodiscard]] Result<void> health() const;

private:
  Database(std::filesystem::path path, const DatabaseOptions &options, MarkContent known,
           std::optional<DurableMark> mark);
  // Whether rows are to be read and written, or it is only looked at whether they are there.
  enum class Purpose : std::uint8_t { use, look };

  [[nodiscard]] static Result<std::unique_ptr<Database>> open_for(Purpose purpose, const DatabaseOptions &options);
  [[nodiscard]] static Result<void> look_first(const DatabaseOptions &options);
  [[nodiscard]] Result<void> check_whole(const DatabaseOptions &options);
  [[nodiscard]] Result<void> open_files(Purpose purpose, const DatabaseOptions &options);

  std::filesystem::path path_;
  const DatabaseKind &kind_;
  bool read_only_;
  bool accepts_loss_;
  std::shared_ptr<StorageEnvironment> environment_;
  std::optional<DurableMark> mark_; // nothing before the first boot of a database that was made without one
  std::unique_ptr<LogCheck> check_; // RocksDB keeps its address
  std::shared_ptr<LogWatch> watch_;
  std::shared_ptr<Place> place_; // null when read-only
  Claims claims_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::TransactionDB *transactions_ = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle *> families_;
};

} // namespace onced::rocks
