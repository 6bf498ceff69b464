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
#include "onced/store.hpp"
#include "rocksdb/durable_mark.hpp"
#include "rocksdb/environment.hpp"
#include "rocksdb/loss_check.hpp"
#include "rocksdb/place.hpp"
#include "rocksdb/status.hpp"

namespace onced::rocks {

// Where a family lies among those of the database; the first is RocksDB's own.
[[nodiscard]] constexpr std::size_t place_of(engine::Family family) {
  switch (family) {
  case engine::Family::operations:
    return 1;
  case engine::Family::dead_letters:
    return 2;
  case engine::Family::meta:
    return 3;
  case engine::Family::queue:
    return 4;
  case engine::Family::relay:
    return 5;
  }
  return 0;
}

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
  [[nodiscard]] rocksdb::ColumnFamilyHandle *family(engine::Family family) const { return families_[place_of(family)]; }
  [[nodiscard]] std::string path() const { return path_.string(); }

  // What the database says of itself, as the opening found it.
  [[nodiscard]] const Claims &claims() const { return claims_; }
  // The highest boot that the mark knows.
  [[nodiscard]] std::uint64_t marked_boot() const { return mark_.content().boot; }

  // Before the first batch of a boot: the mark says durably that it has begun. Nothing else may be written meanwhile.
  // Errors: `store_unavailable`.
  [[nodiscard]] Result<void> begin_boot(std::uint64_t boot);
  // After that batch, which was synced, and with which the database has this identity: so has the mark, durably.
  [[nodiscard]] Result<void> boot_begun(const StoreIdentity &identity);

  // After a synced commit: raises the mark to it. Of a batch its first row is enough, since a log's record is read
  // whole or not at all; and what others have written since need not be synced.
  void mark_durable(rocksdb::Transaction &committed) { mark_.advance(committed.GetId()); }
  // Puts all that was written on stable storage and marks it. Nothing may be written meanwhile.
  void mark_all_durable();

  // Whether the mark covers all that can be read.
  [[nodiscard]] bool mark_covers_all() const {
    const std::uint64_t last = db_->GetLatestSequenceNumber();
    return last <= mark_.sequence() || check_->ends_with(last, mark_.sequence());
  }

  // Whether what was synced is where the next opening will look for it. Call before anything is acknowledged.
  [[nodiscard]] Result<void> check_place() const { return place_->check(); }

  // Nothing, or what RocksDB reported in the background.
  [[nodiscard]] Result<void> health() const;

private:
  Database(std::filesystem::path path, const StoreOptions &options, DurableMark mark);
  // Whether rows are to be read and written, or it is only looked at whether they are there.
  enum class Purpose : std::uint8_t { use, look };

  [[nodiscard]] static Result<std::unique_ptr<Database>> open_for(Purpose purpose, const StoreOptions &options);
  [[nodiscard]] static Result<void> look_first(const StoreOptions &options);
  [[nodiscard]] Result<void> check_whole(const StoreOptions &options);
  [[nodiscard]] Result<void> open_files(Purpose purpose, const StoreOptions &options);

  std::filesystem::path path_;
  bool read_only_;
  bool accepts_loss_;
  std::shared_ptr<StorageEnvironment> environment_;
  DurableMark mark_;
  std::unique_ptr<LogCheck> check_; // RocksDB keeps its address
  std::shared_ptr<LogWatch> watch_;
  std::shared_ptr<Place> place_; // null when read-only
  Claims claims_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::TransactionDB *transactions_ = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle *> families_;
};

} // namespace onced::rocks
