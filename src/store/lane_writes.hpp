#pragma once

#include <string>

#include <rocksdb/utilities/transaction.h>

#include "store/commit_lane.hpp"
#include "store/row_room.hpp"
#include "store/rows/records.hpp"

// What lanes write in the same way.
namespace onced::store {

// What a new dead letter is counted in until its transaction is committed, or given up.
struct LetterAccount {
  LaneCounters &counters;
  RowAmount &reserved; // of the room for dead letters
};

// Puts the dead letter of a job that has failed for good into a transaction. Where the same job has failed before, the
// two are one row, in the bytes that are counted. `refused`: the dead letters are at their cap, and nothing may be
// written. `record` is a buffer.
[[nodiscard]] rocksdb::Status put_failed_letter(rocksdb::Transaction &transaction, const CommitContext &context,
                                                DeadLetter letter, const LetterAccount &account, RecordDecoder &decoder,
                                                Bytes &record, bool &refused);

// Puts a lane's counters, under their two names; the second only where bytes of dead letters were added.
[[nodiscard]] rocksdb::Status put_lane_counters(rocksdb::Transaction &transaction, const Database &database,
                                                const LaneCounters &counters, const std::string &counters_name,
                                                const std::string &bytes_name, bool letters_added, Bytes &record);

} // namespace onced::store
