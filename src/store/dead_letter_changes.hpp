#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "onced/store.hpp"
#include "rocksdb/database.hpp"
#include "store/commit_lane.hpp"
#include "store/locked_job.hpp"
#include "store/rows/records.hpp"
#include "store/verdict.hpp"

namespace onced::store {

// The rows of the audit that there are; none when `last` is below `first`.
struct AuditRange {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
};

// Redrives, purges and resolutions: the changes that a person orders. Each is one transaction on stable storage that
// writes what follows for the dead letter, the key's row and the queue, the counters and a row of the audit. One thread
// at a time.
class DeadLetterChanges {
public:
  DeadLetterChanges(CommitContext context, ChangeCounters counters, AuditRange audit);

  // As Store::redrive, Store::purge and Store::resolve. After `store_unavailable` the store must be given up.
  [[nodiscard]] Result<Redriven> redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who);
  [[nodiscard]] Result<void> purge(const DeadLetterId &id, const Operator &who);
  [[nodiscard]] Result<void> resolve(const Key &key, const std::optional<Bytes> &applied_result, const Operator &who);

private:
  // A dead letter as it is under its lock.
  struct Locked {
    bool exists = false;
    std::optional<DeadLetter> letter; // nothing: damaged
  };

  // Nothing: it lost a race and wrote nothing.
  [[nodiscard]] Result<std::optional<bool>> try_purge(const DeadLetterId &id, const Operator &who);
  [[nodiscard]] rocksdb::Status find_job(const DeadLetterId &id);
  [[nodiscard]] rocksdb::Status find_claim(const DeadLetterId &id, bool &claims);
  [[nodiscard]] rocksdb::Status put_resolution(const Key &key, LockedJob &held,
                                               const std::optional<Bytes> &applied_result);
  [[nodiscard]] rocksdb::Status enqueue(const DeadLetter &letter);

  [[nodiscard]] Result<DeadLetter> read(const DeadLetterId &id);
  void parse(const DeadLetter &letter);
  // Nothing: it lost a race and wrote nothing.
  [[nodiscard]] Result<std::optional<Redriven>> try_redrive(const DeadLetter &letter, const Handlers &handlers,
                                                            const Operator &who);
  [[nodiscard]] rocksdb::Status judge(const DeadLetter &letter, const Handlers &handlers);
  [[nodiscard]] rocksdb::Status begin_again(const Handlers &handlers);
  [[nodiscard]] rocksdb::Status change_suspicion();
  [[nodiscard]] rocksdb::Status put_suspicion(const std::optional<CrashCount> &count);
  [[nodiscard]] rocksdb::Status judge_relayed(const DeadLetter &letter);
  void reserve_relay(std::vector<RelayEntry> entries);
  [[nodiscard]] DeadLetterId id_after_verdict(const DeadLetter &letter);
  [[nodiscard]] rocksdb::Status lock_letter(const DeadLetterId &id, Locked &locked);
  [[nodiscard]] rocksdb::Status lock_letters(const DeadLetterId &id, Locked &locked, const DeadLetterId &other_id,
                                             Locked &other);

  [[nodiscard]] rocksdb::Status settle(const DeadLetter &letter);
  [[nodiscard]] rocksdb::Status keep(DeadLetter letter, const DeadLetterId &new_id, const Locked &there);
  void take_verdict(DeadLetter &letter, const DeadLetterId &new_id) const;
  [[nodiscard]] rocksdb::Status erase(const DeadLetterId &id);
  void count_removed(std::uint64_t bytes);
  [[nodiscard]] rocksdb::Status record(AuditRow row, const Operator &who);

  void begin();
  [[nodiscard]] rocksdb::Status commit();
  void abandon();
  void tell_queued(const Key &key, std::string_view type, WallTime accepted_at);

  CommitContext context_;
  ChangeCounters counters_;
  AuditRange audit_;
  std::unique_ptr<rocksdb::Transaction> transaction_;
  GuardedRun run_;
  JobParser parser_;
  Digester digester_;
  RecordDecoder decoder_;

  // The change in hand.
  WallTime now_;
  Job job_; // of the dead letter; this and the next two only without a defect
  Key key_;
  Digest digest_;
  std::optional<JobDefect> defect_; // why its bytes are no job
  Verdict verdict_;
  bool queues_ = false;             // it is to be put into the queue
  RowAmount queue_room_;            // taken for it
  std::vector<RelayEntry> relayed_; // to be put into the relay; room is taken for them
  ChangeCounters new_counters_;     // once it is committed; as the next
  AuditRange new_audit_;
  bool suspicion_changes_ = false;
  std::optional<CrashCount> new_suspicion_;
  Bytes record_;
};

} // namespace onced::store
