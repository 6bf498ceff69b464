#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <rocksdb/db.h>

#include "onced/store.hpp"
#include "rocksdb/tuning.hpp"

namespace onced::bench {

inline void check(const rocksdb::Status &status) {
  if (!status.ok()) throw std::runtime_error("rocksdb: " + status.ToString());
}

// The database of a store, opened by RocksDB with the store's options and without its transactions and its mark.
class PlainDatabase {
public:
  explicit PlainDatabase(const StoreOptions &options) {
    const auto cache = rocks::block_cache(options.block_cache_bytes);
    const auto db_options = rocks::database_options(rocks::options_of_store(options), cache);
    const auto families = rocks::store_database.families(cache);
    const std::string path = (options.directory / "db").string();
    rocksdb::DB *db = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    check(options.read_only ? rocksdb::DB::OpenForReadOnly(db_options, path, families, &families_, &db)
                            : rocksdb::DB::Open(db_options, path, families, &families_, &db));
    opening_ = std::chrono::steady_clock::now() - begin;
    db_.reset(db);
    for (std::size_t at = 0; at < families.size(); ++at) {
      if (families[at].name == "operations") operations_ = families_[at];
    }
    if (operations_ == nullptr) throw std::runtime_error("there is no family for operations");
  }
  ~PlainDatabase() {
    for (auto *family : families_)
      db_->DestroyColumnFamilyHandle(family);
  }
  PlainDatabase(const PlainDatabase &) = delete;
  PlainDatabase &operator=(const PlainDatabase &) = delete;

  [[nodiscard]] rocksdb::DB &db() const { return *db_; }
  [[nodiscard]] rocksdb::ColumnFamilyHandle *operations() const { return operations_; }
  [[nodiscard]] std::chrono::nanoseconds opening() const { return opening_; }

private:
  std::vector<rocksdb::ColumnFamilyHandle *> families_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle *operations_ = nullptr;
  std::chrono::nanoseconds opening_{};
};

} // namespace onced::bench
