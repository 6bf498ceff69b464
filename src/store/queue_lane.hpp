#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/commit_lane.hpp"
#include "store/job_queue.hpp"
#include "store/locked_job.hpp"

namespace onced::store {

// Writes what becomes of one queued job at a time, each step in one synced transaction that holds the lock of the job's
// key. One thread at a time.
class QueueLane {
public:
  QueueLane(CommitContext context, unsigned number, LaneCounters counters);

  // As of JobQueue. An error means that the store must be given up.
  [[nodiscard]] Result<Received> begin_receive(BytesView key, const FencingToken &token, const QueuedType &type);
  [[nodiscard]] Result<QueueSettled> give_back(BytesView key, const FencingToken &token);
  [[nodiscard]] Result<QueueSettled> settle(BytesView key, const FencingToken &token, const QueueEnding &ending);
  [[nodiscard]] Result<QueueSettled> exhaust(BytesView key, std::string_view error);

private:
  struct KillPoints {
    KillPoint before;
    KillPoint after;
  };

  // Whether a job in this state may be ended.
  using MayEnd = bool (*)(const QueueRow &row, const FencingToken &token);

  // Decides under the lock what is to be written, and puts it into the transaction. False: nothing is.
  using Step = std::function<bool(LockedJob &job, rocksdb::Status &status)>;

  // False: others held the key for too long, and nothing was written.
  [[nodiscard]] Result<bool> change(BytesView key, const KillPoints &points, const Step &step);
  [[nodiscard]] bool is_intact(BytesView key, const LockedJob &locked, Job &job);
  [[nodiscard]] Result<QueueSettled> end_where(MayEnd may_end, BytesView key, const FencingToken &token,
                                               const QueueEnding &ending);
  [[nodiscard]] QueueSettled end(BytesView key, LockedJob &locked, const QueueEnding &ending, rocksdb::Status &status);
  [[nodiscard]] rocksdb::Status commit_result(BytesView key, const LockedJob &locked, const QueueEnding &ending,
                                              bool &refused);
  [[nodiscard]] bool prepare_messages(BytesView key, const QueueRow &row, const std::vector<RelayMessage> &messages);
  [[nodiscard]] rocksdb::Status bury(BytesView key, const LockedJob &locked, bool &refused);
  [[nodiscard]] rocksdb::Status take_out(BytesView key, const QueueRow &row);
  [[nodiscard]] rocksdb::Status put_row(BytesView key, QueueRow &row);
  [[nodiscard]] rocksdb::Status put_counters();
  [[nodiscard]] rocksdb::Status commit(const KillPoints &points);
  void begin();
  void abandon();

  CommitContext context_;
  LaneCounters counters_;
  std::string counters_name_;
  std::string bytes_name_;
  std::unique_ptr<rocksdb::Transaction> transaction_;
  JobParser parser_;
  Digester digester_;
  RecordDecoder decoder_;

  // The step in hand.
  WallTime now_;
  LaneCounters new_counters_;       // once it is committed
  RowAmount letter_reserved_;       // for its dead letter
  std::vector<RelayEntry> relayed_; // room is reserved for them
  Bytes record_;
};

} // namespace onced::store
