#pragma once

#include <rocksdb/utilities/transaction.h>

#include "rocksdb/database.hpp"
#include "store/rows/queue_row.hpp"
#include "store/rows/records.hpp"

namespace onced::store {

// A queued job as it is while a transaction holds the lock of its key.
struct LockedJob {
  enum class State : std::uint8_t {
    gone,    // the key has no pending row
    damaged, // it has one, or had, and what belongs to it cannot be read
    there,
  };
  State state = State::gone;
  Digest digest; // this and the next only when it is there
  QueueRow row;
};

// Locks the key and reads the job's rows. Not ok: neither is known.
[[nodiscard]] rocksdb::Status lock_job(rocksdb::Transaction &transaction, const Database &database, BytesView key,
                                       RecordDecoder &decoder, LockedJob &job);

// The job's row in `operations`, ready to be encoded, synced as all that is written of queued jobs once they are in
// custody. It borrows what it is given.
[[nodiscard]] OperationRecord operation_record(Phase phase, const QueueRow &row, const Digest &digest, BytesView result,
                                               WallTime now);

// Whether bytes may be committed as a result, and messages with it. Errors: `usage`.
[[nodiscard]] Result<void> check_result(BytesView result, JobParser &parser);
[[nodiscard]] Result<void> check_messages(const std::vector<RelayMessage> &messages, JobParser &parser);

} // namespace onced::store
