#include "store/dead_letter_changes.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "rocksdb/measured_commit.hpp"
#include "rocksdb/slices.hpp"
#include "store/relay_queue.hpp"

namespace onced::store {
namespace {

constexpr std::string_view contended_redrive_detail = "other commits held the same keys for too long; try again";
constexpr std::string_view full_relay_detail = "the relay is at its cap; try again when its messages are sent on";
constexpr std::string_view full_queue_detail = "the queue is at its cap; try again when its jobs are handled";

Error no_such_letter(const DeadLetterId &id) {
  return {.code = ErrorCode::not_found,
          .concerns = "dead letter " + to_hex(id.view()),
          .cause = "there is none of this id",
          .remedy = "list them; it may have been redriven or purged (see the audit)"};
}

Error damaged_letter(const DeadLetterId &id) {
  return {.code = ErrorCode::corrupt,
          .concerns = "dead letter " + to_hex(id.view()),
          .cause = "its row is damaged",
          .remedy = "restore the data directory from a copy, or purge it"};
}

Result<void> check_text(std::string_view concerns, std::string_view text, std::size_t bytes_max) {
  if (!text.empty() && text.size() <= bytes_max && utf8::valid(text)) return {};
  return tl::unexpected(Error{.code = ErrorCode::usage,
                              .concerns = std::string(concerns),
                              .cause = "it is not 1 to " + std::to_string(bytes_max) + " bytes of UTF-8",
                              .remedy = "say who makes the change, and why"});
}

Result<void> check(const Operator &who) {
  if (auto checked = check_text("by", who.by, limits::audit_by_bytes_max); !checked) return checked;
  return check_text("why", who.why, limits::audit_why_bytes_max);
}

Error contended_error(std::string concerns) {
  return {.code = ErrorCode::timed_out,
          .concerns = std::move(concerns),
          .cause = "other commits held it for too long",
          .remedy = "try again"};
}

std::string held_job(const Key &key) {
  return "held job " + to_hex(key.bytes);
}

// Why a job cannot be resolved.
Error not_held(const Key &key, const LockedJob &job) {
  if (job.state == LockedJob::State::damaged) {
    return {.code = ErrorCode::corrupt,
            .concerns = held_job(key),
            .cause = "its rows are damaged",
            .remedy = "restore the data directory from a copy"};
  }
  return {.code = ErrorCode::not_found,
          .concerns = held_job(key),
          .cause = job.state == LockedJob::State::there ? "it is queued, but not held" : "there is none under this key",
          .remedy = "list those that are held; it may have been resolved (see the audit)"};
}

bool removes(Outcome outcome) {
  return traits_of(outcome).success || outcome == Outcome::accepted;
}

} // namespace

DeadLetterChanges::DeadLetterChanges(CommitContext context, ChangeCounters counters, AuditRange audit)
    : context_(context), counters_(counters), audit_(audit), run_(context.suspects) {}

// --- The three changes ----------------------------------------------------------------------------------------------

Result<Redriven> DeadLetterChanges::redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who) {
  if (auto checked = check(who); !checked) return tl::unexpected(checked.error());
  for (unsigned tries = 0; tries <= limits::commit_retries_max; ++tries) {
    const auto letter = read(id);
    if (!letter) return tl::unexpected(letter.error());
    parse(*letter);
    auto redriven = try_redrive(*letter, handlers, who);
    if (!redriven) return tl::unexpected(redriven.error());
    if (*redriven) return std::move(**redriven);
  }
  return Redriven{
      .settlement = {.outcome = Outcome::busy, .result = {}, .detail = std::string(contended_redrive_detail)},
      .removed = false,
      .id = id};
}

Result<void> DeadLetterChanges::purge(const DeadLetterId &id, const Operator &who) {
  if (auto checked = check(who); !checked) return checked;
  for (unsigned tries = 0; tries <= limits::commit_retries_max; ++tries) {
    const auto purged = try_purge(id, who);
    if (!purged) return tl::unexpected(purged.error());
    if (*purged) return {};
  }
  return tl::unexpected(contended_error("dead letter " + to_hex(id.view())));
}

Result<void> DeadLetterChanges::resolve(const Key &key, const std::optional<Bytes> &applied_result,
                                        const Operator &who) {
  if (auto checked = check(who); !checked) return checked;
  if (applied_result) {
    if (auto checked = check_result(*applied_result, parser_); !checked) return checked;
  }
  for (unsigned tries = 0; tries <= limits::commit_retries_max; ++tries) {
    begin();
    LockedJob job;
    auto status = lock_job(*transaction_, context_.database, key.bytes, decoder_, job);
    if (status.ok() && (job.state != LockedJob::State::there || job.row.state != QueueState::held)) {
      abandon();
      return tl::unexpected(not_held(key, job));
    }
    if (status.ok()) status = put_resolution(key, job, applied_result);
    const Outcome outcome = applied_result ? Outcome::stored : Outcome::accepted;
    if (status.ok()) {
      AuditRow row;
      row.action = "resolve";
      row.outcome = traits_of(outcome).name;
      row.key = key.bytes;
      status = record(std::move(row), who);
    }
    if (status.ok()) status = commit();
    if (status.ok() && !applied_result) tell_queued(key, job.row.type, job.row.accepted_at);
    if (status.ok()) return {};
    abandon();
    if (!is_retryable(status)) return tl::unexpected(write_error(status, context_.database.path()));
  }
  return tl::unexpected(contended_error(held_job(key)));
}

rocksdb::Status DeadLetterChanges::put_resolution(const Key &key, LockedJob &held,
                                                  const std::optional<Bytes> &applied_result) {
  const auto row_key = slice_of(key.bytes);
  QueueRow &row = held.row;
  if (!applied_result) {
    row.state = QueueState::waiting;
    row.effect_unknown = false;
    row.receives = 0;
    row.changed_at = now_;
    encode_queued(row, record_);
    return transaction_->PutUntracked(context_.database.queue(), row_key, slice_of(record_));
  }
  encode_operation(operation_record(Phase::committed, row, held.digest, *applied_result, now_), record_);
  auto status = transaction_->Put(context_.database.operations(), row_key, slice_of(record_), true);
  if (!status.ok()) return status;
  ++new_counters_.results;
  new_counters_.queue.remove(row.bytes.size());
  return transaction_->DeleteUntracked(context_.database.queue(), row_key);
}

// --- A purge, step by step ------------------------------------------------------------------------------------------

Result<std::optional<bool>> DeadLetterChanges::try_purge(const DeadLetterId &id, const Operator &who) {
  const auto seen = read(id);
  if (!seen && seen.error().code != ErrorCode::corrupt) return tl::unexpected(seen.error());
  begin();
  Locked locked;
  bool claims = false;
  rocksdb::Status status;
  if (seen) {
    parse(*seen);
  } else {
    status = find_job(id);
  }
  if (status.ok()) status = find_claim(id, claims);
  if (status.ok()) status = lock_letter(id, locked);
  if (status.ok() && (!locked.exists || locked.letter.has_value() != seen.has_value())) {
    abandon();
    return std::nullopt; // somebody was faster: it is looked at anew
  }
  if (status.ok()) status = erase(id);
  if (status.ok() && claims) {
    status = transaction_->Delete(context_.database.operations(), slice_of(key_.bytes), true);
  }
  // Of a suspect nothing is known any more: delivered again, the job is a new one.
  if (status.ok() && seen && !defect_ && context_.suspects.find(key_.bytes)) status = put_suspicion(std::nullopt);
  if (status.ok()) count_removed(locked.letter ? locked.letter->bytes.size() : 0);
  AuditRow row;
  row.action = "purge";
  row.dead_letter = id;
  if (status.ok()) status = record(std::move(row), who);
  if (status.ok()) status = commit();
  if (status.ok()) return true;
  abandon();
  if (is_retryable(status)) return std::nullopt;
  return tl::unexpected(write_error(status, context_.database.path()));
}

// The job of a damaged dead letter, which cannot say it: where it is a queued one that has failed, its row tells by its
// key and digest whose it is. What of the rows cannot be read is left as it is.
rocksdb::Status DeadLetterChanges::find_job(const DeadLetterId &id) {
  defect_ = JobDefect::malformed;
  const std::unique_ptr<rocksdb::Iterator> rows(
      context_.database.db()->NewIterator(scan_options(), context_.database.operations()));
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    const auto row = decoder_.operation(view_of(rows->value()));
    if (!row || row->phase != Phase::failed) continue;
    key_.bytes.assign(view_of(rows->key()));
    digest_ = row->digest;
    if (dead_letter_id(key_, digest_, Outcome::failed, digester_) != id) continue;
    defect_.reset();
    return {};
  }
  return rows->status().IsCorruption() ? rocksdb::Status() : rows->status();
}

// Whether the key's row is there only because of this dead letter: that of a queued job that has failed.
rocksdb::Status DeadLetterChanges::find_claim(const DeadLetterId &id, bool &claims) {
  if (defect_ || dead_letter_id(key_, digest_, Outcome::failed, digester_) != id) return {};
  rocksdb::PinnableSlice found;
  const auto status =
      transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.operations(), slice_of(key_.bytes), &found);
  if (!status.ok()) return status.IsNotFound() || status.IsCorruption() ? rocksdb::Status() : status;
  const auto row = decoder_.operation(view_of(found));
  claims = row && row->phase == Phase::failed && row->digest == digest_;
  return {};
}

// --- A redrive, step by step ----------------------------------------------------------------------------------------

Result<DeadLetter> DeadLetterChanges::read(const DeadLetterId &id) {
  std::string value;
  auto status = context_.database.db()->Get(rocksdb::ReadOptions(), context_.database.dead_letters(),
                                            slice_of(id.view()), &value);
  if (status.IsNotFound()) return tl::unexpected(no_such_letter(id));
  if (status.IsCorruption()) return tl::unexpected(damaged_letter(id));
  if (!status.ok()) return tl::unexpected(write_error(status, context_.database.path()));
  auto letter = decoder_.dead_letter(id, value);
  if (!letter) return tl::unexpected(damaged_letter(id));
  return std::move(*letter);
}

void DeadLetterChanges::parse(const DeadLetter &letter) {
  defect_.reset();
  if (const auto parsed = parser_.parse(letter.bytes, job_); !parsed) {
    defect_ = parsed.error();
    return;
  }
  assign_key(job_, key_);
  digest_ = digester_.intent(job_.type, job_.payload);
}

Result<std::optional<Redriven>> DeadLetterChanges::try_redrive(const DeadLetter &letter, const Handlers &handlers,
                                                               const Operator &who) {
  begin();
  auto status = letter.relay_key.empty() ? judge(letter, handlers) : judge_relayed(letter);
  const Outcome outcome = verdict_.settlement.outcome;
  if (status.ok() && outcome == Outcome::busy) {
    abandon();
    return Redriven{.settlement = verdict_.settlement, .removed = false, .id = letter.id};
  }
  const DeadLetterId new_id = id_after_verdict(letter);
  Locked locked;
  Locked there;
  if (status.ok()) status = lock_letters(letter.id, locked, new_id, there);
  if (status.ok() && (!locked.letter || locked.letter->bytes != letter.bytes)) {
    abandon();
    return std::nullopt; // somebody was faster: it is looked at anew
  }
  if (status.ok()) status = change_suspicion();
  if (status.ok()) status = removes(outcome) ? settle(*locked.letter) : keep(*locked.letter, new_id, there);
  AuditRow row;
  row.action = "redrive";
  row.dead_letter = letter.id;
  row.outcome = traits_of(outcome).name;
  if (status.ok()) status = record(std::move(row), who);
  if (status.ok()) status = commit();
  if (status.ok() && queues_) tell_queued(key_, job_.type, letter.first_at);
  if (status.ok()) {
    return Redriven{.settlement = std::move(verdict_.settlement), .removed = removes(outcome), .id = new_id};
  }
  abandon();
  if (is_retryable(status)) return std::nullopt;
  return tl::unexpected(write_error(status, context_.database.path()));
}

// Locks the key before the handler runs, so that what is found absent stays absent.
rocksdb::Status DeadLetterChanges::judge(const DeadLetter &letter, const Handlers &handlers) {
  verdict_ = {};
  queues_ = false;
  if (defect_) {
    // What was wrong with a whole message cannot be seen in its bytes: its first word on it stands.
    const bool whole_message = letter.reason == Outcome::invalid && letter.operation_id.empty();
    verdict_ = verdict_of_defect(whole_message ? std::string_view(letter.detail) : name_of(*defect_));
    return {};
  }
  KeyRow row;
  rocksdb::PinnableSlice found;
  auto status =
      transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.operations(), slice_of(key_.bytes), &found);
  if (status.IsNotFound()) {
    if (auto begun = begin_again(handlers); !begun.ok()) return begun;
    verdict_ = run_.verdict(key_, job_, handlers, parser_);
    queues_ = verdict_.settlement.outcome == Outcome::accepted;
  } else if (!status.ok() && !status.IsCorruption()) {
    return status;
  } else {
    row.read(status.ok() ? view_of(found) : BytesView{}, decoder_);
    verdict_ = verdict_of_row(row, key_, digest_, digester_);
    // A queued job that has failed is tried again only by a redrive, and of no other dead letter than its own.
    queues_ = verdict_.settlement.outcome == Outcome::failed &&
              dead_letter_id(key_, digest_, Outcome::failed, digester_) == letter.id;
  }
  if (!verdict_.messages.empty()) {
    reserve_relay(relay_entries(verdict_.messages, key_.bytes, job_.traceparent, now_, digester_, parser_));
  }
  if (!queues_) return {};
  if (!context_.queue_room.reserve(letter.bytes.size())) {
    verdict_.settlement = {.outcome = Outcome::busy, .result = {}, .detail = std::string(full_queue_detail)};
    return {};
  }
  queue_room_ = {.rows = 1, .bytes = letter.bytes.size()};
  verdict_.settlement = {.outcome = Outcome::accepted, .result = {}, .detail = {}};
  return {};
}

// A handler that has ended the process too often has as many runs again for each redrive. It may take several: a
// command whose worker dies asks again. So they are counted, on stable storage, and the redrive after the last is
// answered.
rocksdb::Status DeadLetterChanges::begin_again(const Handlers &handlers) {
  const auto count = context_.suspects.find(key_.bytes);
  if (!handlers.has_inline(job_.type) || !count || count->crashes < limits::max_receive_count || count->redriven)
    return {};
  const CrashCount anew{.crashes = 0, .redriven = true};
  encode_crash_count(anew, record_);
  auto status = context_.database.transactions()->Put(synced_write(), context_.database.meta(),
                                                      slice_of(crashes_name(key_.bytes)), slice_of(record_));
  if (status.ok()) context_.suspects.set(key_.bytes, anew);
  return status;
}

rocksdb::Status DeadLetterChanges::change_suspicion() {
  if (verdict_.suspicion == Suspicion::none) return {};
  if (verdict_.suspicion == Suspicion::cleared) return put_suspicion(std::nullopt);
  auto count = context_.suspects.find(key_.bytes);
  if (count) count->redriven = false; // this redrive is answered
  return put_suspicion(count);
}

// Nothing: it is no suspect any more.
rocksdb::Status DeadLetterChanges::put_suspicion(const std::optional<CrashCount> &count) {
  suspicion_changes_ = true;
  new_suspicion_ = count;
  const Bytes name = crashes_name(key_.bytes);
  if (!count) return transaction_->DeleteUntracked(context_.database.meta(), slice_of(name));
  encode_crash_count(*count, record_);
  return transaction_->PutUntracked(context_.database.meta(), slice_of(name), slice_of(record_));
}

// It is another worker's job: it goes on its way again.
rocksdb::Status DeadLetterChanges::judge_relayed(const DeadLetter &letter) {
  verdict_ = {};
  queues_ = false;
  verdict_.settlement.outcome = Outcome::accepted;
  rocksdb::PinnableSlice found;
  auto status =
      transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.relay(), slice_of(letter.relay_key), &found);
  if (status.ok()) return status; // it is on its way already, as its parent was lost and done once more
  if (!status.IsNotFound() && !status.IsCorruption()) return status;
  std::vector<RelayEntry> entries;
  entries.push_back(relay_entry_of(letter));
  reserve_relay(std::move(entries));
  return {};
}

void DeadLetterChanges::reserve_relay(std::vector<RelayEntry> entries) {
  if (context_.relay_room.reserve(amount_of(entries))) {
    relayed_ = std::move(entries);
  } else {
    verdict_.settlement = {.outcome = Outcome::busy, .result = {}, .detail = std::string(full_relay_detail)};
  }
}

// The reason is part of the id, so a dead letter with another reason lies elsewhere.
DeadLetterId DeadLetterChanges::id_after_verdict(const DeadLetter &letter) {
  const Outcome outcome = verdict_.settlement.outcome;
  if (removes(outcome)) return letter.id;
  return dead_letter_id(defect_ ? nullptr : &key_, digest_, letter.bytes, outcome, digester_);
}

rocksdb::Status DeadLetterChanges::lock_letter(const DeadLetterId &id, Locked &locked) {
  rocksdb::PinnableSlice found;
  auto status =
      transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.dead_letters(), slice_of(id.view()), &found);
  if (status.IsNotFound()) return {};
  if (!status.ok() && !status.IsCorruption()) return status;
  locked.exists = true;
  if (status.ok()) locked.letter = decoder_.dead_letter(id, view_of(found));
  return {};
}

// In the order of their ids, after the key, as a lane locks its own: nobody waits in a circle.
rocksdb::Status DeadLetterChanges::lock_letters(const DeadLetterId &id, Locked &locked, const DeadLetterId &other_id,
                                                Locked &other) {
  rocksdb::Status status;
  if (other_id < id) status = lock_letter(other_id, other);
  if (status.ok()) status = lock_letter(id, locked);
  if (status.ok() && id < other_id) status = lock_letter(other_id, other);
  return status;
}

// --- What is written ------------------------------------------------------------------------------------------------

rocksdb::Status DeadLetterChanges::settle(const DeadLetter &letter) {
  if (verdict_.settlement.outcome == Outcome::stored) {
    // Synced in every mode, so the row may say so.
    encode_operation(operation_record(Phase::committed, job_, digest_, verdict_.settlement.result, letter.issued_at,
                                      now_, Durability::fsync),
                     record_);
    auto status = transaction_->Put(context_.database.operations(), slice_of(key_.bytes), slice_of(record_), true);
    if (!status.ok()) return status;
    ++new_counters_.results;
  }
  if (queues_) {
    if (auto status = enqueue(letter); !status.ok()) return status;
  }
  auto status = put_relayed(*transaction_, context_.database, relayed_, record_);
  if (!status.ok()) return status;
  new_counters_.relay.add(amount_of(relayed_));
  count_removed(letter.bytes.size());
  return erase(letter.id);
}

// Its budget of receives begins again. What it is known of its effect goes with it.
rocksdb::Status DeadLetterChanges::enqueue(const DeadLetter &letter) {
  const auto key = slice_of(key_.bytes);
  encode_operation(operation_record(Phase::pending, job_, digest_, {}, letter.issued_at, now_, Durability::fsync),
                   record_);
  auto status = transaction_->Put(context_.database.operations(), key, slice_of(record_), true);
  if (!status.ok()) return status;
  encode_queued(queue_row_of(letter, now_), record_);
  new_counters_.queue.add(letter.bytes.size());
  return transaction_->PutUntracked(context_.database.queue(), key, slice_of(record_));
}

// `there` is what lies under the new id, if that is another one: the same job with the same verdict, so the two become
// one.
rocksdb::Status DeadLetterChanges::keep(DeadLetter letter, const DeadLetterId &new_id, const Locked &there) {
  const DeadLetterId old_id = letter.id;
  take_verdict(letter, new_id);
  if (there.exists) count_removed(there.letter ? there.letter->bytes.size() : 0);
  if (there.letter) {
    letter.deliveries += there.letter->deliveries;
    letter.receives += there.letter->receives;
    letter.redrives += there.letter->redrives;
    letter.detail = there.letter->errors.empty() ? letter.detail : there.letter->detail;
    letter.errors = there.letter->errors; // of the queued job that this is another dead letter of
    letter.effect_unknown = there.letter->effect_unknown;
    letter.first_at = std::min(letter.first_at, there.letter->first_at);
    letter.last_at = std::max(letter.last_at, there.letter->last_at);
  }
  if (new_id != old_id) {
    if (auto status = erase(old_id); !status.ok()) return status;
  }
  encode_dead_letter(letter, record_);
  return transaction_->Put(context_.database.dead_letters(), slice_of(new_id.view()), slice_of(record_), true);
}

void DeadLetterChanges::take_verdict(DeadLetter &letter, const DeadLetterId &new_id) const {
  letter.id = new_id;
  letter.reason = verdict_.settlement.outcome;
  letter.detail = verdict_.settlement.detail;
  letter.stored_digest = verdict_.stored_digest;
  letter.stored_phase = verdict_.stored_phase;
  ++letter.redrives;
  letter.operation_id = defect_ ? std::string() : job_.operation_id;
  letter.type = defect_ ? std::string() : job_.type;
  letter.effect_key = defect_ ? std::string() : job_.effect_key;
  letter.offered_digest = defect_ ? std::nullopt : std::optional(digest_);
}

rocksdb::Status DeadLetterChanges::erase(const DeadLetterId &id) {
  return transaction_->Delete(context_.database.dead_letters(), slice_of(id.view()), true);
}

void DeadLetterChanges::count_removed(std::uint64_t bytes) {
  ++new_counters_.dead_letters_removed;
  new_counters_.dead_letter_bytes_removed += bytes;
}

rocksdb::Status DeadLetterChanges::record(AuditRow row, const Operator &who) {
  auto *meta = context_.database.meta();
  encode_change_counters(new_counters_, record_);
  auto status = transaction_->PutUntracked(meta, slice_of(change_counters_name), slice_of(record_));
  if (!status.ok()) return status;
  row.number = ++new_audit_.last;
  row.at = now_;
  row.by = who.by;
  row.why = who.why;
  encode_audit(row, record_);
  status = transaction_->PutUntracked(meta, slice_of(audit_name(new_audit_.last)), slice_of(record_));
  for (; status.ok() && new_audit_.last - new_audit_.first >= context_.options.audit_rows_max; ++new_audit_.first)
    status = transaction_->DeleteUntracked(meta, slice_of(audit_name(new_audit_.first)));
  return status;
}

// --- The transaction ------------------------------------------------------------------------------------------------

void DeadLetterChanges::begin() {
  now_ = context_.clock.wall();
  new_counters_ = counters_;
  new_audit_ = audit_;
  suspicion_changes_ = false;
  transaction_.reset(context_.database.transactions()->BeginTransaction(synced_write(), rocksdb::TransactionOptions(),
                                                                        transaction_.release()));
  transaction_->DisableIndexing(); // nothing is read back from the batch
}

rocksdb::Status DeadLetterChanges::commit() {
  context_.arrive(KillPoint::worker_before_change);
  auto status = measured_commit(context_.database, *transaction_, context_.clock, context_.options.counters);
  if (!status.ok()) return status;
  if (context_.options.durability == Durability::fsync) context_.database.mark_durable(*transaction_);
  context_.letter_room.release(
      {.rows = new_counters_.dead_letters_removed - counters_.dead_letters_removed,
       .bytes = new_counters_.dead_letter_bytes_removed - counters_.dead_letter_bytes_removed});
  context_.queue_room.release({.rows = new_counters_.queue.removed - counters_.queue.removed,
                               .bytes = new_counters_.queue.bytes_removed - counters_.queue.bytes_removed});
  queue_room_ = {};
  counters_ = new_counters_;
  audit_ = new_audit_;
  if (suspicion_changes_ && new_suspicion_) context_.suspects.set(key_.bytes, *new_suspicion_);
  if (suspicion_changes_ && !new_suspicion_) context_.suspects.remove(key_.bytes);
  context_.arrive(KillPoint::worker_after_change);
  if (!relayed_.empty() && context_.options.observer != nullptr) context_.options.observer->relayed();
  relayed_.clear();
  return status;
}

void DeadLetterChanges::abandon() {
  const auto status = transaction_->Rollback(); // of a failed commit it fails too; the store is given up then
  status.PermitUncheckedError();
  context_.queue_room.release(std::exchange(queue_room_, {}));
  context_.relay_room.release(amount_of(std::exchange(relayed_, {})));
}

void DeadLetterChanges::tell_queued(const Key &key, std::string_view type, WallTime accepted_at) {
  if (context_.options.observer != nullptr) context_.options.observer->queued(key.bytes, type, accepted_at);
}

} // namespace onced::store
