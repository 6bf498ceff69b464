#include "store/recount.hpp"

#include <algorithm>

namespace onced::store {
namespace {

// Calls `visit` with every value of a family.
template <class Visit>
Result<void> for_each_value(const Database &database, rocksdb::ColumnFamilyHandle *family, Visit &&visit) {
  const std::unique_ptr<rocksdb::Iterator> rows(database.db()->NewIterator(scan_options(), family));
  for (rows->SeekToFirst(); rows->Valid(); rows->Next())
    visit(rows->value().ToStringView());
  if (!rows->status().ok()) return tl::unexpected(status_error(rows->status(), database.path()));
  return {};
}

} // namespace

Result<RowAmount> count_letters_by_scan(const Database &database) {
  RowAmount amount;
  RecordDecoder decoder;
  const auto read = for_each_value(database, database.dead_letters(), [&](BytesView value) {
    ++amount.rows;
    if (const auto letter = decoder.dead_letter({}, value)) amount.bytes += letter->bytes.size();
  });
  if (!read) return tl::unexpected(read.error());
  return amount;
}

Result<LaneCounters> count_by_scan(const Database &database) {
  const auto letters = count_letters_by_scan(database);
  if (!letters) return tl::unexpected(letters.error());
  LaneCounters counted;
  counted.dead_letters = letters->rows;
  counted.dead_letter_bytes = letters->bytes;
  RecordDecoder decoder;
  auto read = for_each_value(database, database.operations(), [&](BytesView value) {
    const auto row = decoder.operation(value);
    if (!row || row->phase == Phase::committed) ++counted.results;
  });
  if (!read) return tl::unexpected(read.error());
  read = for_each_value(database, database.queue(), [&](BytesView value) {
    const auto row = decoder.queued(value);
    counted.queue.add(row ? row->bytes.size() : 0);
  });
  if (!read) return tl::unexpected(read.error());
  read = for_each_value(database, database.relay(), [&](BytesView value) {
    const auto row = decoder.relayed(value);
    counted.relay.add(row ? row->job.size() : 0);
  });
  if (!read) return tl::unexpected(read.error());
  return counted;
}

Result<std::uint64_t> greatest_boot_by_scan(const Database &database) {
  std::uint64_t greatest = 0;
  RecordDecoder decoder;
  const auto read = for_each_value(database, database.queue(), [&](BytesView value) {
    if (const auto row = decoder.queued(value)) greatest = std::max(greatest, row->token.boot);
  });
  if (!read) return tl::unexpected(read.error());
  return greatest;
}

} // namespace onced::store
