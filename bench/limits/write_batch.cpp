#include <memory>
#include <stdexcept>
#include <string>

#include <rocksdb/db.h>

#include "batches.hpp"
#include "rows.hpp"
#include "store/slices.hpp"
#include "store/tuning.hpp"

namespace onced::bench::limits {
namespace {

void check(const rocksdb::Status &status) {
  if (!status.ok()) throw std::runtime_error("rocksdb: " + status.ToString());
}

// The database of a store that is new, without its transactions and its mark.
class PlainDatabase {
public:
  explicit PlainDatabase(const std::filesystem::path &directory) {
    StoreOptions options;
    options.directory = directory;
    const auto cache = store::block_cache(options.block_cache_bytes);
    const auto families = store::column_families(cache);
    rocksdb::DB *db = nullptr;
    check(rocksdb::DB::Open(store::database_options(options, cache), (directory / "db").string(), families, &families_,
                            &db));
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

  void write(const std::vector<NewRow> &rows, rocksdb::WriteBatch &batch) {
    batch.Clear();
    for (const NewRow &row : rows)
      check(batch.Put(operations_, store::slice_of(row.key), store::slice_of(row.value)));
    rocksdb::WriteOptions synced;
    synced.sync = true;
    check(db_->Write(synced, &batch));
  }

  [[nodiscard]] std::size_t count() {
    const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(rocksdb::ReadOptions(), operations_));
    std::size_t count = 0;
    for (rows->SeekToFirst(); rows->Valid(); rows->Next())
      ++count;
    check(rows->status());
    return count;
  }

private:
  std::vector<rocksdb::ColumnFamilyHandle *> families_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle *operations_ = nullptr;
};

} // namespace

Measured measure_write_batch(const Setting &setting) {
  const auto batches = rows_by_batch(setting.traffic);
  PlainDatabase database(setting.directory);
  Measured measured = time_batches(batches.size(), setting.threads, [&] {
    return BatchWork(
        [&, buffer = rocksdb::WriteBatch()](std::size_t batch) mutable { database.write(batches[batch], buffer); });
  });
  measured.row_bytes = bytes_of(batches);
  if (const std::size_t rows = database.count(); rows != setting.traffic.stored) {
    throw std::runtime_error("the database has " + std::to_string(rows) + " rows, not " +
                             std::to_string(setting.traffic.stored));
  }
  return measured;
}

} // namespace onced::bench::limits
