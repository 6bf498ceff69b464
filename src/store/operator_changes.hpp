#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "store/row_changes.hpp"
#include "store/suspects/guarded_run.hpp"
#include "store/unit_of_work.hpp"
#include "store/verdict.hpp"

namespace onced::store {

// The rows of the audit that there are; none when `last` is below `first`.
struct AuditRange {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
};

// Redrives, purges and resolutions: the changes that a person orders. Each is one unit, on stable storage in every
// mode, that writes what follows for the dead letter, the key's row and the queue, and a row of the audit. Any thread;
// one change at a time.
class OperatorChanges {
public:
  OperatorChanges(StoreContext &context, AuditRange audit)
      : context_(context), audit_(audit), unit_(context), run_(context.suspects) {}

  // As Store::redrive, Store::purge and Store::resolve.
  [[nodiscard]] Result<Redriven> redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who);
  [[nodiscard]] Result<void> purge(const DeadLetterId &id, const Operator &who);
  [[nodiscard]] Result<void> resolve(const Key &key, const std::optional<Bytes> &applied_result, const Operator &who);

private:
  // A dead letter as it is under its lock.
  struct Locked {
    bool exists = false;
    std::optional<DeadLetter> letter; // nothing: damaged
  };
  // How a change ended that rests on what was read before its unit.
  enum class Turn : std::uint8_t {
    done,
    overtaken, // what it rests on has changed: it is looked at anew
    contended,
  };

  [[nodiscard]] Result<DeadLetter> read(const DeadLetterId &id) const;
  void parse(const DeadLetter &letter);

  // --- Redrive ---
  [[nodiscard]] Result<Turn> try_redrive(const DeadLetter &letter, const Handlers &handlers, const Operator &who);
  [[nodiscard]] Result<void> judge(const DeadLetter &letter, const Handlers &handlers);
  void judge_row(const DeadLetter &letter);
  [[nodiscard]] Result<void> begin_again(const Handlers &handlers);
  [[nodiscard]] bool put_redrive(const DeadLetter &letter, const Operator &who);
  [[nodiscard]] bool key_is_as_judged();
  [[nodiscard]] bool reserve(const DeadLetter &letter);
  void put_key_row(const DeadLetter &letter);
  void settle(const DeadLetter &letter);
  void keep(DeadLetter letter, const Locked &there);
  void take_verdict(DeadLetter &letter) const;
  [[nodiscard]] DeadLetterId id_after_verdict(const DeadLetter &letter);

  // --- Purge ---
  [[nodiscard]] Result<Turn> try_purge(const DeadLetterId &id, const Operator &who);
  [[nodiscard]] Result<void> find_job(const DeadLetterId &id);
  [[nodiscard]] bool lock_claim(const DeadLetterId &id);

  // --- In a unit ---
  [[nodiscard]] Locked lock_letter(const DeadLetterId &id);
  void change_suspicion();
  void put_suspicion(const std::optional<CrashCount> &count);
  void put_audit(AuditRow row, const Operator &who);
  void tell_queued(const Key &key, std::string_view type, WallTime accepted_at);

  StoreContext &context_;
  std::mutex mutex_; // guards the rest
  AuditRange audit_;
  UnitOfWork unit_;
  GuardedRun run_;

  // The change in hand.
  Job job_; // of the dead letter; this and the next two only without a defect
  Key key_;
  Digest digest_;
  std::optional<JobDefect> defect_; // why its bytes are no job
  KeyRow row_;                      // of the key, as the verdict rests on it
  Verdict verdict_;
  DeadLetterId new_id_;             // under which the dead letter lies after it, if it stays
  bool queues_ = false;             // its job is to be put into the queue
  bool sends_on_ = false;           // the dead letter is a message's
  std::vector<RelayEntry> relayed_; // to be put into the relay
  Turn turn_ = Turn::done;
};

} // namespace onced::store
