#include "crash/scan.hpp"

#include <functional>
#include <memory>
#include <stdexcept>

#include <msgpack.hpp>
#include <rocksdb/db.h>

namespace onced::crash {
namespace {

void check(const rocksdb::Status &status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

class Database {
public:
  explicit Database(const std::string &path) {
    check(rocksdb::DB::ListColumnFamilies({}, path, &names_));
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.reserve(names_.size());
    for (const std::string &name : names_)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::DBOptions options;
    options.info_log_level = rocksdb::InfoLogLevel::FATAL_LEVEL;
    rocksdb::DB *db = nullptr;
    check(rocksdb::DB::OpenForReadOnly(options, path, families, &handles_, &db));
    db_.reset(db);
  }
  ~Database() {
    for (rocksdb::ColumnFamilyHandle *handle : handles_)
      db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  Database(const Database &) = delete;
  Database &operator=(const Database &) = delete;

  void each(const std::string &family, const std::function<void(const Bytes &, const Bytes &)> &visit) const {
    for (std::size_t at = 0; at < names_.size(); ++at) {
      if (names_[at] != family) continue;
      const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator({}, handles_[at]));
      for (rows->SeekToFirst(); rows->Valid(); rows->Next())
        visit(rows->key().ToString(), rows->value().ToString());
      check(rows->status());
    }
  }

private:
  std::vector<std::string> names_;
  std::vector<rocksdb::ColumnFamilyHandle *> handles_;
  std::unique_ptr<rocksdb::DB> db_;
};

// One MessagePack value, an array: its fields by their numbers in the tables of the document.
class Fields {
public:
  Fields(const Bytes &value, std::size_t size) {
    std::size_t end = 0;
    holder_ = msgpack::unpack(value.data(), value.size(), end);
    if (end != value.size()) throw std::runtime_error("bytes after a value: " + hex_of(value));
    if (holder_->type != msgpack::type::ARRAY || holder_->via.array.size != size) {
      throw std::runtime_error("no array of " + std::to_string(size) + ": " + hex_of(value));
    }
  }

  [[nodiscard]] std::uint64_t number(std::size_t field) const { return at(field).as<std::uint64_t>(); }
  [[nodiscard]] std::int64_t integer(std::size_t field) const { return at(field).as<std::int64_t>(); }
  // Empty: nil.
  [[nodiscard]] std::string text(std::size_t field) const {
    return at(field).is_nil() ? std::string() : at(field).as<std::string>();
  }
  [[nodiscard]] Bytes binary(std::size_t field) const {
    if (at(field).is_nil()) return {};
    if (at(field).type != msgpack::type::BIN) throw std::runtime_error("not binary: field " + std::to_string(field));
    return {at(field).via.bin.ptr, at(field).via.bin.size};
  }
  void expect(std::size_t field, std::uint64_t value) const {
    if (number(field) != value) throw std::runtime_error("field " + std::to_string(field) + " is not as written");
  }

private:
  [[nodiscard]] const msgpack::object &at(std::size_t field) const { return holder_->via.array.ptr[field]; }
  msgpack::object_handle holder_;
};

Row row_of(const Bytes &value) {
  const Fields fields(value, 11);
  fields.expect(0, 2);
  fields.expect(1, 0);
  fields.expect(10, 0);
  return {.digest = fields.binary(2),
          .result = fields.binary(3),
          .operation_id = fields.text(4),
          .type = fields.text(5),
          .effect_key = fields.text(6),
          .value = value};
}

Letter letter_of(const Bytes &value) {
  const Fields fields(value, 21);
  fields.expect(0, 2);
  return {.reason = static_cast<unsigned>(fields.number(1)),
          .bytes = fields.binary(3),
          .operation_id = fields.text(4),
          .deliveries = fields.number(10),
          .stored_digest = fields.binary(15),
          .offered_digest = fields.binary(16)};
}

void count(const Bytes &name, const Bytes &value, Scan &found) {
  if (!name.starts_with("sums/")) return;
  const Fields fields(value, 8);
  fields.expect(0, 1);
  found.results_counted += fields.integer(1);
  found.letters_counted += fields.integer(2);
}

std::string operation_id_of(const Bytes &job) {
  const auto holder = msgpack::unpack(job.data(), job.size());
  const auto fields = holder->as<std::map<std::string, msgpack::object>>();
  return fields.at("operation_id").as<std::string>();
}

} // namespace

Scan scan(const std::filesystem::path &data) {
  const Database database((data / "db").string());
  Scan found;
  database.each("operations", [&](const Bytes &key, const Bytes &value) { found.rows[key] = row_of(value); });
  database.each("dead_letters", [&](const Bytes &id, const Bytes &value) { found.letters[id] = letter_of(value); });
  database.each("meta", [&](const Bytes &name, const Bytes &value) { count(name, value, found); });
  return found;
}

std::vector<std::string> scan_outbox(const std::filesystem::path &outbox) {
  std::vector<std::string> kept;
  if (!std::filesystem::exists(outbox / "db" / "CURRENT")) return kept;
  const Database database((outbox / "db").string());
  database.each("default", [&](const Bytes &, const Bytes &value) {
    const Fields fields(value, 4);
    fields.expect(0, 1);
    kept.push_back(operation_id_of(fields.binary(3)));
  });
  return kept;
}

} // namespace onced::crash
