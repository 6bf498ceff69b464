#include "power/scan.hpp"

#include <cstdarg>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include <msgpack.hpp>
#include <rocksdb/db.h>
#include <rocksdb/env.h>

namespace onced::testing {
namespace {

using Row = std::vector<msgpack::object>;
using RowsOfFamily = std::map<std::string, std::string>;

// RocksDB would else begin a log file of its own beside the database.
class NoLog final : public rocksdb::Logger {
public:
  using rocksdb::Logger::Logv;
  void Logv(const char *, va_list) override {}
};

void check(const rocksdb::Status &status) {
  if (!status.ok()) throw std::runtime_error("the scan: " + status.ToString());
}

void expect(bool is_so, const std::string &what) {
  if (!is_so) throw std::runtime_error("the scan: a row is not as documented: " + what);
}

// A database that is open to be read.
class ReadOnlyDatabase {
public:
  explicit ReadOnlyDatabase(const std::filesystem::path &path) {
    rocksdb::DBOptions options;
    options.info_log = std::make_shared<NoLog>();
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
    std::vector<std::string> names;
    check(rocksdb::DB::ListColumnFamilies(options, path.string(), &names));
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.reserve(names.size());
    for (const std::string &name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::DB *db = nullptr;
    check(rocksdb::DB::OpenForReadOnly(options, path.string(), families, &handles_, &db));
    db_.reset(db);
  }
  ~ReadOnlyDatabase() {
    for (auto *handle : handles_)
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  ReadOnlyDatabase(const ReadOnlyDatabase &) = delete;
  ReadOnlyDatabase &operator=(const ReadOnlyDatabase &) = delete;

  [[nodiscard]] RowsOfFamily rows(const std::string &family) const {
    RowsOfFamily found;
    for (auto *handle : handles_) {
      if (handle->GetName() != family) continue;
      const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator({}, handle));
      for (rows->SeekToFirst(); rows->Valid(); rows->Next())
        found.emplace(rows->key().ToString(), rows->value().ToString());
      check(rows->status());
    }
    return found;
  }

private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle *> handles_;
};

msgpack::object_handle unpack(const std::string &bytes) {
  std::size_t end = 0;
  auto value = msgpack::unpack(bytes.data(), bytes.size(), end);
  expect(end == bytes.size(), "bytes behind the value");
  return value;
}

std::string length_prefixed(const std::string &text) {
  return std::string(1, static_cast<char>(text.size())) + text;
}

void add_operation(const std::string &key, const std::string &value, Fates &fates) {
  const auto unpacked = unpack(value);
  const auto row = unpacked->as<Row>();
  expect(row.size() == 11 && row[0].as<int>() == 2 && row[1].as<int>() == 0, "the array of an operation");
  const auto name = row[4].as<std::string>();
  const auto type = row[5].as<std::string>();
  expect(key == '\x01' + length_prefixed(type) + length_prefixed(name), "the key of an operation");
  fates[name] = stored(unpack(row[3].as<std::string>())->as<std::size_t>());
}

void add_dead_letter(const std::string &value, Fates &fates) {
  const auto unpacked = unpack(value);
  const auto row = unpacked->as<Row>();
  expect(row.size() == 21 && row[0].as<int>() == 2, "the array of a dead letter");
  const std::map<int, std::string> reasons{{2, "conflict"}, {3, "invalid"}, {4, "failed"}};
  auto name = row[4].as<std::string>();
  const std::string &reason = reasons.at(row[1].as<int>());
  if (reason == "conflict") name += conflict_mark;
  const auto offered = row[3].as<std::string>();
  expect(offered.find(row[4].as<std::string>()) != std::string::npos, "the bytes of a dead letter");
  fates[name] = reason;
}

} // namespace

Fates scan_worker(const std::filesystem::path &data) {
  const ReadOnlyDatabase database(data / "db");
  Fates fates;
  for (const auto &[key, value] : database.rows("operations"))
    add_operation(key, value, fates);
  for (const auto &[key, value] : database.rows("dead_letters"))
    add_dead_letter(value, fates);
  return fates;
}

std::set<std::string> scan_outbox(const std::filesystem::path &outbox) {
  const ReadOnlyDatabase database(outbox / "db");
  std::set<std::string> names;
  for (const auto &[key, value] : database.rows("default")) {
    const auto unpacked = unpack(value);
    const auto row = unpacked->as<Row>();
    expect(key.size() == 8 && row.size() == 4 && row[0].as<int>() == 1, "the row of an outbox");
    const auto job = unpack(row[3].as<std::string>());
    names.insert(job->as<std::map<std::string, msgpack::object>>().at("operation_id").as<std::string>());
  }
  return names;
}

} // namespace onced::testing
