#pragma once

#include <functional>

#include "store/unit_of_work.hpp"

// What several units write in the same way.
namespace onced::store {

// Adds what the new dead letter says to the one that is there under the same id, or the other way round: into `letter`.
using FoldLetters = void (*)(DeadLetter &letter, DeadLetter &&there);

// Puts a dead letter. Where one of the same id is there, `fold` makes one of the two, in the bytes that are counted. A
// damaged one is replaced. False: the dead letters are at their cap, and nothing may be written.
[[nodiscard]] bool put_letter(UnitOfWork &unit, StoreContext &context, DeadLetter letter, FoldLetters fold);

// Of a job that has failed for good, and has failed so before: the newest account stands, and the counts go on.
void fold_failed(DeadLetter &letter, DeadLetter &&there);

// Takes a dead letter of so many bytes of job out of the sums and of the room, once the unit is written.
void count_letter_removed(UnitOfWork &unit, StoreContext &context, std::uint64_t bytes);

// Puts the messages of a result, for which there is room, into the relay.
void put_relayed(UnitOfWork &unit, std::span<const RelayEntry> entries);

// A queued job as it is while its key is locked.
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
[[nodiscard]] LockedJob lock_job(UnitOfWork &unit, BytesView key);

// Puts a queued job's row, changed now.
void put_queued(UnitOfWork &unit, BytesView key, QueueRow &row);
// Takes a queued job out, and its room once the unit is written.
void take_out_queued(UnitOfWork &unit, StoreContext &context, BytesView key, const QueueRow &row);
// Puts how often a job's handler has ended the process; nothing: it is no suspect any more.
void put_crash_count(UnitOfWork &unit, BytesView key, const std::optional<CrashCount> &count);
// Puts the row of a key that this unit holds.
void put_operation(UnitOfWork &unit, BytesView key, const OperationRecord &row);

// The row of a queued job's key, synced as all that is written of queued jobs once they are accepted. It borrows what
// it is given.
[[nodiscard]] OperationRecord operation_record(Phase phase, const QueueRow &row, const Digest &digest, BytesView result,
                                               WallTime now);

// Whether bytes may be committed as a result, and messages with it. Errors: `usage`.
[[nodiscard]] Result<void> check_result(BytesView result, JobParser &parser);
[[nodiscard]] Result<void> check_messages(const std::vector<RelayMessage> &messages, JobParser &parser);

} // namespace onced::store
