#include "store/row_changes.hpp"

#include <algorithm>

#include "job/relayed_job.hpp"
#include "onced/version.hpp"

namespace onced::store {

using engine::Counter;
using engine::Family;
using engine::Found;

// --- Dead letters ---------------------------------------------------------------------------------------------------

bool put_letter(UnitOfWork &unit, StoreContext &context, DeadLetter letter, FoldLetters fold) {
  const DeadLetterId id = letter.id;
  const Found found = unit.lock(Family::dead_letters, id.view());
  if (found.state == Found::State::absent) {
    const std::uint64_t bytes = letter.bytes.size();
    if (!unit.reserve(context.letter_room, {.rows = 1, .bytes = bytes})) return false;
    encode_dead_letter(letter, unit.record);
    unit.put_new(Family::dead_letters, id.view(), unit.record);
    unit.add(Counter::dead_letters, 1);
    unit.add(Counter::dead_letter_bytes, bytes);
    return true;
  }
  auto there = found.state == Found::State::present ? unit.decoder.dead_letter(id, found.value) : std::nullopt;
  if (there) fold(letter, std::move(*there));
  encode_dead_letter(letter, unit.record);
  unit.put(Family::dead_letters, id.view(), unit.record);
  return true;
}

void fold_failed(DeadLetter &letter, DeadLetter &&there) {
  letter.bytes = std::move(there.bytes);
  letter.deliveries += there.deliveries;
  letter.redrives += there.redrives;
  letter.first_at = std::min(letter.first_at, there.first_at);
}

void count_letter_removed(UnitOfWork &unit, StoreContext &context, std::uint64_t bytes) {
  unit.subtract(Counter::dead_letters, 1);
  unit.subtract(Counter::dead_letter_bytes, bytes);
  unit.release(context.letter_room, {.rows = 1, .bytes = bytes});
}

// --- Messages -------------------------------------------------------------------------------------------------------

void put_relayed(UnitOfWork &unit, std::span<const RelayEntry> entries) {
  for (const RelayEntry &entry : entries) {
    encode_relayed(entry.row, unit.record);
    unit.put(Family::relay, entry.key, unit.record);
  }
  const RowAmount amount = amount_of(entries);
  if (amount.rows == 0) return;
  unit.add(Counter::relayed, amount.rows);
  unit.add(Counter::relayed_bytes, amount.bytes);
}

// --- Queued jobs ----------------------------------------------------------------------------------------------------

LockedJob lock_job(UnitOfWork &unit, BytesView key) {
  LockedJob job;
  const Found found = unit.lock(Family::operations, key);
  if (found.state == Found::State::absent) return job;
  job.state = LockedJob::State::damaged;
  const auto operation = found.state == Found::State::present ? unit.decoder.operation(found.value) : std::nullopt;
  if (!operation) return job;
  if (operation->phase != Phase::pending) {
    job.state = LockedJob::State::gone;
    return job;
  }
  job.digest = operation->digest;
  const Found queued = unit.lock(Family::queue, key);
  auto row = queued.state == Found::State::present ? unit.decoder.queued(queued.value) : std::nullopt;
  if (!row) return job;
  job.row = std::move(*row);
  job.state = LockedJob::State::there;
  return job;
}

void put_queued(UnitOfWork &unit, BytesView key, QueueRow &row) {
  row.changed_at = unit.now();
  encode_queued(row, unit.record);
  unit.put(Family::queue, key, unit.record);
}

void take_out_queued(UnitOfWork &unit, StoreContext &context, BytesView key, const QueueRow &row) {
  const std::uint64_t bytes = row.bytes.size();
  unit.erase(Family::queue, key);
  unit.subtract(Counter::queued, 1);
  unit.subtract(Counter::queued_bytes, bytes);
  unit.release(context.queue_room, {.rows = 1, .bytes = bytes});
}

void put_crash_count(UnitOfWork &unit, BytesView key, const std::optional<CrashCount> &count) {
  const Bytes name = crashes_name(key);
  if (!count) return unit.erase(Family::meta, name);
  encode_crash_count(*count, unit.record);
  unit.put(Family::meta, name, unit.record);
}

void put_operation(UnitOfWork &unit, BytesView key, const OperationRecord &row) {
  encode_operation(row, unit.record);
  unit.put(Family::operations, key, unit.record);
}

OperationRecord operation_record(Phase phase, const QueueRow &row, const Digest &digest, BytesView result,
                                 WallTime now) {
  return {.phase = phase,
          .digest = digest,
          .result = result,
          .operation_id = row.operation_id,
          .type = row.type,
          .effect_key = row.effect_key,
          .issued_at = row.issued_at,
          .committed_at = now,
          .worker_build = worker_build(),
          .durability = Durability::fsync};
}

Result<void> check_result(BytesView result, JobParser &parser) {
  const auto canonical = parser.canonical(result);
  if (canonical && *canonical == result && result.size() <= limits::result_bytes_max) return {};
  return tl::unexpected(Error{.code = ErrorCode::usage,
                              .concerns = "the result",
                              .cause = "it is not one MessagePack value in canonical form of at most " +
                                       std::to_string(limits::result_bytes_max) + " bytes",
                              .remedy = "put it in canonical form first"});
}

Result<void> check_messages(const std::vector<RelayMessage> &messages, JobParser &parser) {
  const auto defect = defect_of(messages, parser);
  if (!defect) return {};
  return tl::unexpected(Error{.code = ErrorCode::usage,
                              .concerns = "the messages of a result",
                              .cause = *defect,
                              .remedy = "correct the handler"});
}

} // namespace onced::store
