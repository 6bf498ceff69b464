#include "store/lane_writes.hpp"

#include <algorithm>

#include "rocksdb/slices.hpp"

namespace onced::store {

rocksdb::Status put_failed_letter(rocksdb::Transaction &transaction, const CommitContext &context, DeadLetter letter,
                                  const LetterAccount &account, RecordDecoder &decoder, Bytes &record, bool &refused) {
  const DeadLetterId id = letter.id;
  const auto id_slice = slice_of(id.view());
  rocksdb::PinnableSlice found;
  auto status = transaction.GetForUpdate(rocksdb::ReadOptions(), context.database.dead_letters(), id_slice, &found);
  if (!status.ok() && !status.IsNotFound() && !status.IsCorruption()) return status;
  if (status.IsNotFound()) {
    refused = !context.letter_room.reserve(letter.bytes.size());
    if (refused) return {};
    account.reserved = {.rows = 1, .bytes = letter.bytes.size()};
    ++account.counters.dead_letters;
    account.counters.dead_letter_bytes += letter.bytes.size();
  } else if (auto there = status.ok() ? decoder.dead_letter(id, view_of(found)) : std::nullopt) {
    letter.bytes = std::move(there->bytes);
    letter.deliveries += there->deliveries;
    letter.redrives += there->redrives;
    letter.first_at = std::min(letter.first_at, there->first_at);
  }
  encode_dead_letter(letter, record);
  return transaction.Put(context.database.dead_letters(), id_slice, slice_of(record), true);
}

rocksdb::Status put_lane_counters(rocksdb::Transaction &transaction, const Database &database,
                                  const LaneCounters &counters, const std::string &counters_name,
                                  const std::string &bytes_name, bool letters_added, Bytes &record) {
  encode_counters(counters, record);
  auto status = transaction.PutUntracked(database.meta(), counters_name, slice_of(record));
  if (!status.ok() || !letters_added) return status;
  encode_number(counters.dead_letter_bytes, record);
  return transaction.PutUntracked(database.meta(), bytes_name, slice_of(record));
}

} // namespace onced::store
