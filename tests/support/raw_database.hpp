#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <rocksdb/db.h>

#include "onced/bytes.hpp"

namespace onced::testing {

// The database of a closed store, opened past the store: to see the very bytes on disk, or to do it harm.
class RawDatabase {
public:
  explicit RawDatabase(const std::filesystem::path &data_directory) {
    const std::string path = (data_directory / "db").string();
    std::vector<std::string> names;
    check(rocksdb::DB::ListColumnFamilies({}, path, &names));
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string &name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::DBOptions options;
    options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
    std::vector<rocksdb::ColumnFamilyHandle *> handles;
    rocksdb::DB *db = nullptr;
    check(rocksdb::DB::Open(options, path, families, &handles, &db));
    db_.reset(db);
    for (std::size_t at = 0; at < names.size(); ++at)
      handles_[names[at]] = handles[at];
  }
  ~RawDatabase() {
    for (const auto &[name, handle] : handles_)
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  RawDatabase(const RawDatabase &) = delete;
  RawDatabase &operator=(const RawDatabase &) = delete;

  [[nodiscard]] std::uint64_t last_sequence() const { return db_->GetLatestSequenceNumber(); }

  // Every row of a family.
  [[nodiscard]] std::map<Bytes, Bytes> rows(const std::string &family) const {
    std::map<Bytes, Bytes> found;
    const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator({}, handles_.at(family)));
    for (rows->SeekToFirst(); rows->Valid(); rows->Next())
      found[rows->key().ToString()] = rows->value().ToString();
    check(rows->status());
    return found;
  }
  void put(const std::string &family, BytesView key, BytesView value) {
    check(db_->Put(synced(), handles_.at(family), slice(key), slice(value)));
  }
  void erase(const std::string &family, BytesView key) {
    check(db_->Delete(synced(), handles_.at(family), slice(key)));
  }
  void add_family(const std::string &name) {
    rocksdb::ColumnFamilyHandle *handle = nullptr;
    check(db_->CreateColumnFamily({}, name, &handle));
    handles_[name] = handle;
  }
  void drop_family(const std::string &name) { check(db_->DropColumnFamily(handles_.at(name))); }
  // Writes every memtable out to a table and shrinks what is on disk to the rows there are.
  void compact() {
    for (const auto &[name, handle] : handles_) {
      check(db_->Flush({}, handle));
      check(db_->CompactRange({}, handle, nullptr, nullptr));
    }
  }

private:
  static void check(const rocksdb::Status &status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }
  static rocksdb::WriteOptions synced() {
    rocksdb::WriteOptions options;
    options.sync = true;
    return options;
  }
  static rocksdb::Slice slice(BytesView bytes) { return {bytes.data(), bytes.size()}; }

  std::unique_ptr<rocksdb::DB> db_;
  std::map<std::string, rocksdb::ColumnFamilyHandle *> handles_;
};

} // namespace onced::testing
