#include "store/locked_job.hpp"

#include "job/relayed_job.hpp"
#include "onced/version.hpp"
#include "rocksdb/slices.hpp"

namespace onced::store {

rocksdb::Status lock_job(rocksdb::Transaction &transaction, const Database &database, BytesView key,
                         RecordDecoder &decoder, LockedJob &job) {
  const auto unread = [](const rocksdb::Status &status) {
    return !status.ok() && !status.IsNotFound() && !status.IsCorruption();
  };
  job.state = LockedJob::State::damaged;
  rocksdb::PinnableSlice found;
  auto status = transaction.GetForUpdate(rocksdb::ReadOptions(), database.operations(), slice_of(key), &found);
  if (unread(status)) return status;
  const auto operation = status.ok() ? decoder.operation(view_of(found)) : std::nullopt;
  if (status.IsNotFound() || (operation && operation->phase != Phase::pending)) job.state = LockedJob::State::gone;
  if (!operation || operation->phase != Phase::pending) return {};
  job.digest = operation->digest;

  rocksdb::PinnableSlice queued;
  status = database.db()->Get(rocksdb::ReadOptions(), database.queue(), slice_of(key), &queued);
  if (unread(status)) return status;
  auto row = status.ok() ? decoder.queued(view_of(queued)) : std::nullopt;
  if (!row) return {};
  job.row = std::move(*row);
  job.state = LockedJob::State::there;
  return {};
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
