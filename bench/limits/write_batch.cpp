#include <memory>
#include <stdexcept>
#include <string>

#include "batches.hpp"
#include "plain_database.hpp"
#include "rocksdb/slices.hpp"
#include "rows.hpp"

namespace onced::bench::limits {
namespace {

void write(const PlainDatabase &database, const std::vector<NewRow> &rows, rocksdb::WriteBatch &batch) {
  batch.Clear();
  for (const NewRow &row : rows)
    check(batch.Put(database.operations(), rocks::slice_of(row.key), rocks::slice_of(row.value)));
  rocksdb::WriteOptions synced;
  synced.sync = true;
  check(database.db().Write(synced, &batch));
}

std::size_t count(const PlainDatabase &database) {
  const std::unique_ptr<rocksdb::Iterator> rows(
      database.db().NewIterator(rocksdb::ReadOptions(), database.operations()));
  std::size_t count = 0;
  for (rows->SeekToFirst(); rows->Valid(); rows->Next())
    ++count;
  check(rows->status());
  return count;
}

} // namespace

Measured measure_write_batch(const Setting &setting) {
  const auto batches = rows_by_batch(setting.traffic);
  StoreOptions options;
  options.directory = setting.directory;
  const PlainDatabase database(options);
  Measured measured = time_batches(batches.size(), setting.threads, [&] {
    return BatchWork(
        [&, buffer = rocksdb::WriteBatch()](std::size_t batch) mutable { write(database, batches[batch], buffer); });
  });
  measured.row_bytes = bytes_of(batches);
  if (const std::size_t rows = count(database); rows != setting.traffic.stored) {
    throw std::runtime_error("the database has " + std::to_string(rows) + " rows, not " +
                             std::to_string(setting.traffic.stored));
  }
  return measured;
}

} // namespace onced::bench::limits
