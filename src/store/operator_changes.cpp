#include "store/operator_changes.hpp"

#include <algorithm>
#include <array>

#include "base/utf8.hpp"

namespace onced::store {
namespace {

using engine::Counter;
using engine::Family;
using engine::Found;

constexpr std::string_view contended_redrive_detail = "other commits held the same keys for too long; try again";
constexpr std::string_view relay_room_detail = "the relay is at its cap; try again when its messages are sent on";
constexpr std::string_view queue_room_detail = "the queue is at its cap; try again when its jobs are handled";

constexpr UnitOfWork::Kind changing{.before = KillPoint::worker_before_change, .after = KillPoint::worker_after_change};

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

bool is_same_row(const KeyRow &left, const KeyRow &right) {
  return left.state == right.state &&
         (left.state != KeyRow::State::present || (left.phase == right.phase && left.digest == right.digest));
}

} // namespace

// --- The three changes ----------------------------------------------------------------------------------------------

Result<Redriven> OperatorChanges::redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who) {
  const std::scoped_lock lock(mutex_);
  if (auto open = context_.gate.check(); !open) return tl::unexpected(open.error());
  if (auto checked = check(who); !checked) return tl::unexpected(checked.error());
  for (unsigned tries = 0; tries <= limits::commit_retries_max; ++tries) {
    const auto letter = read(id);
    if (!letter) return tl::unexpected(letter.error());
    parse(*letter);
    const auto turn = try_redrive(*letter, handlers, who);
    if (!turn) return tl::unexpected(turn.error());
    if (*turn == Turn::overtaken) continue;
    if (*turn == Turn::contended) break;
    const Outcome outcome = verdict_.settlement.outcome;
    return Redriven{.settlement = std::move(verdict_.settlement),
                    .removed = removes(outcome),
                    .id = outcome == Outcome::busy ? id : new_id_};
  }
  return Redriven{.settlement = busy(contended_redrive_detail), .removed = false, .id = id};
}

Result<void> OperatorChanges::purge(const DeadLetterId &id, const Operator &who) {
  const std::scoped_lock lock(mutex_);
  if (auto open = context_.gate.check(); !open) return open;
  if (auto checked = check(who); !checked) return checked;
  for (unsigned tries = 0; tries <= limits::commit_retries_max; ++tries) {
    const auto turn = try_purge(id, who);
    if (!turn) return tl::unexpected(turn.error());
    if (*turn == Turn::done) return {};
    if (*turn == Turn::contended) break;
  }
  return tl::unexpected(contended_error("dead letter " + to_hex(id.view())));
}

Result<void> OperatorChanges::resolve(const Key &key, const std::optional<Bytes> &applied_result, const Operator &who) {
  const std::scoped_lock lock(mutex_);
  if (auto open = context_.gate.check(); !open) return open;
  if (auto checked = check(who); !checked) return checked;
  if (applied_result) {
    if (auto checked = check_result(*applied_result, unit_.parser); !checked) return checked;
  }
  LockedJob job;
  const auto step = [&] {
    job = lock_job(unit_, key.bytes);
    if (job.state != LockedJob::State::there || job.row.state != QueueState::held) return false;
    if (applied_result) {
      put_operation(unit_, key.bytes,
                    operation_record(Phase::committed, job.row, job.digest, *applied_result, unit_.now()));
      unit_.add(Counter::results, 1);
      take_out_queued(unit_, context_, key.bytes, job.row);
    } else {
      job.row.state = QueueState::waiting;
      job.row.effect_unknown = false;
      job.row.receives = 0;
      put_queued(unit_, key.bytes, job.row);
    }
    AuditRow row;
    row.action = "resolve";
    row.outcome = traits_of(applied_result ? Outcome::stored : Outcome::accepted).name;
    row.key = key.bytes;
    put_audit(std::move(row), who);
    return true;
  };
  const auto ended = unit_.run(changing, step);
  if (!ended) return tl::unexpected(ended.error());
  if (*ended == UnitOfWork::Ended::nothing) return tl::unexpected(not_held(key, job));
  if (*ended == UnitOfWork::Ended::contended) return tl::unexpected(contended_error(held_job(key)));
  if (!applied_result) tell_queued(key, job.row.type, job.row.accepted_at);
  return {};
}

// --- What a change rests on -----------------------------------------------------------------------------------------

Result<DeadLetter> OperatorChanges::read(const DeadLetterId &id) const {
  const auto value = context_.engine.view()->get(Family::dead_letters, id.view());
  if (!value) {
    const bool damaged = value.error().code == ErrorCode::corrupt;
    if (!damaged) context_.gate.close(value.error());
    return tl::unexpected(damaged ? damaged_letter(id) : value.error());
  }
  if (!*value) return tl::unexpected(no_such_letter(id));
  auto letter = RecordDecoder().dead_letter(id, **value);
  if (!letter) return tl::unexpected(damaged_letter(id));
  return std::move(*letter);
}

void OperatorChanges::parse(const DeadLetter &letter) {
  defect_.reset();
  if (const auto parsed = unit_.parser.parse(letter.bytes, job_); !parsed) {
    defect_ = parsed.error();
    return;
  }
  assign_key(job_, key_);
  digest_ = unit_.digester.intent(job_.type, job_.payload);
}

// --- A redrive, step by step ----------------------------------------------------------------------------------------

// The verdict comes before the unit, so that no handler runs in it; the unit then sees whether the key's row is still
// what the verdict rests on.
Result<OperatorChanges::Turn> OperatorChanges::try_redrive(const DeadLetter &letter, const Handlers &handlers,
                                                           const Operator &who) {
  if (auto judged = judge(letter, handlers); !judged) return tl::unexpected(judged.error());
  turn_ = Turn::done;
  if (verdict_.settlement.outcome == Outcome::busy) return turn_;
  new_id_ = id_after_verdict(letter);
  const auto ended = unit_.run(changing, [&] { return put_redrive(letter, who); });
  if (!ended) return tl::unexpected(ended.error());
  if (*ended == UnitOfWork::Ended::contended) return Turn::contended;
  if (*ended == UnitOfWork::Ended::written && queues_) tell_queued(key_, job_.type, letter.first_at);
  return turn_;
}

Result<void> OperatorChanges::judge(const DeadLetter &letter, const Handlers &handlers) {
  verdict_ = {};
  row_ = {};
  queues_ = false;
  relayed_.clear();
  sends_on_ = !letter.relay_key.empty();
  if (sends_on_) { // another worker's job: it goes on its way again
    verdict_.settlement.outcome = Outcome::accepted;
    relayed_.push_back(relay_entry_of(letter));
    return {};
  }
  if (defect_) {
    // What was wrong with a whole message cannot be seen in its bytes: its first word on it stands.
    const bool whole_message = letter.reason == Outcome::invalid && letter.operation_id.empty();
    verdict_ = verdict_of_defect(whole_message ? std::string_view(letter.detail) : name_of(*defect_));
    return {};
  }
  const std::array<BytesView, 1> keys{key_.bytes};
  std::vector<Found> found;
  if (auto looked = unit_.read(Family::operations, keys, found); !looked) {
    context_.gate.close(looked.error());
    return looked;
  }
  row_.read(found.front(), unit_.decoder);
  if (row_.state != KeyRow::State::absent) {
    judge_row(letter);
    return {};
  }
  if (auto begun = begin_again(handlers); !begun) return begun;
  verdict_ = run_.verdict(key_, job_, handlers, unit_.parser);
  queues_ = verdict_.settlement.outcome == Outcome::accepted;
  relayed_ = relay_entries(verdict_.messages, key_.bytes, job_.traceparent, context_.clock.wall(), unit_.digester,
                           unit_.parser);
  return {};
}

void OperatorChanges::judge_row(const DeadLetter &letter) {
  verdict_ = verdict_of_row(row_, key_, digest_, unit_.digester);
  // A queued job that has failed is tried again only by a redrive, and of no other dead letter than its own.
  queues_ = verdict_.settlement.outcome == Outcome::failed &&
            dead_letter_id(key_, digest_, Outcome::failed, unit_.digester) == letter.id;
  if (queues_) verdict_.settlement = {.outcome = Outcome::accepted, .result = {}, .detail = {}};
}

// A handler that has ended the process too often has as many runs again for each redrive. It may take several: a
// command whose worker dies asks again. So they are counted, on stable storage, and the redrive after the last is
// answered.
Result<void> OperatorChanges::begin_again(const Handlers &handlers) {
  const auto count = context_.suspects.find(key_.bytes);
  if (!handlers.has_inline(job_.type) || !count || count->crashes < limits::max_receive_count || count->redriven)
    return {};
  const auto ended = unit_.run(changing, [&] {
    put_suspicion(CrashCount{.crashes = 0, .redriven = true});
    return true;
  });
  if (!ended) return tl::unexpected(ended.error());
  return {};
}

// False: nothing is to be written; `turn_` and the verdict say why.
bool OperatorChanges::put_redrive(const DeadLetter &letter, const Operator &who) {
  turn_ = Turn::done;
  if (!reserve(letter)) return false;
  if (!key_is_as_judged()) {
    turn_ = Turn::overtaken;
    return false;
  }
  const Outcome outcome = verdict_.settlement.outcome;
  if (removes(outcome)) put_key_row(letter);
  // In the order of their ids, after the key, as every unit locks them: nobody waits in a circle.
  Locked there;
  if (new_id_ < letter.id) there = lock_letter(new_id_);
  Locked locked = lock_letter(letter.id);
  if (letter.id < new_id_) there = lock_letter(new_id_);
  if (!locked.letter || locked.letter->bytes != letter.bytes) {
    turn_ = Turn::overtaken;
    return false;
  }
  change_suspicion();
  removes(outcome) ? settle(*locked.letter) : keep(std::move(*locked.letter), there);
  AuditRow row;
  row.action = "redrive";
  row.dead_letter = letter.id;
  row.outcome = traits_of(outcome).name;
  put_audit(std::move(row), who);
  return true;
}

bool OperatorChanges::reserve(const DeadLetter &letter) {
  if (queues_ && !unit_.reserve(context_.queue_room, {.rows = 1, .bytes = letter.bytes.size()})) {
    verdict_.settlement = busy(queue_room_detail);
    return false;
  }
  if (!unit_.reserve(context_.relay_room, amount_of(relayed_))) {
    verdict_.settlement = busy(relay_room_detail);
    return false;
  }
  return true;
}

// Locks what is there; an absent key is claimed by `put_key_row`.
bool OperatorChanges::key_is_as_judged() {
  const bool rests_on_a_row = !defect_ && !sends_on_;
  if (!rests_on_a_row) return true;
  KeyRow now;
  now.read(unit_.lock(Family::operations, key_.bytes), unit_.decoder);
  return unit_.has_failed() || is_same_row(now, row_);
}

// Synced in every mode, so the row may say so.
void OperatorChanges::put_key_row(const DeadLetter &letter) {
  const bool stores = verdict_.settlement.outcome == Outcome::stored;
  if (stores || queues_) {
    const auto phase = stores ? Phase::committed : Phase::pending;
    const BytesView result = stores ? BytesView(verdict_.settlement.result) : BytesView();
    encode_operation(operation_record(phase, job_, digest_, result, letter.issued_at, unit_.now(), Durability::fsync),
                     unit_.record);
    const bool is_new = row_.state == KeyRow::State::absent;
    is_new ? unit_.put_new(Family::operations, key_.bytes, unit_.record)
           : unit_.put(Family::operations, key_.bytes, unit_.record);
  }
  if (stores) unit_.add(Counter::results, 1);
  if (queues_) { // its budget of receives begins again; what is known of its effect goes with it
    encode_queued(queue_row_of(letter, unit_.now()), unit_.record);
    unit_.put(Family::queue, key_.bytes, unit_.record);
    unit_.add(Counter::queued, 1);
    unit_.add(Counter::queued_bytes, letter.bytes.size());
  }
  // A message may be on its way already, as its parent was lost and done once more.
  if (sends_on_ && unit_.lock(Family::relay, relayed_.front().key).state == Found::State::present) {
    return unit_.release(context_.relay_room, amount_of(relayed_));
  }
  put_relayed(unit_, relayed_);
  StoreObserver *observer = context_.options.observer;
  if (!relayed_.empty() && observer != nullptr) unit_.after_commit([observer] { observer->relayed(); });
}

void OperatorChanges::settle(const DeadLetter &letter) {
  count_letter_removed(unit_, context_, letter.bytes.size());
  unit_.erase(Family::dead_letters, letter.id.view());
}

// `there` is what lies under the new id, if that is another one: the same job with the same verdict, so the two become
// one.
void OperatorChanges::keep(DeadLetter letter, const Locked &there) {
  const DeadLetterId old_id = letter.id;
  take_verdict(letter);
  if (there.exists) count_letter_removed(unit_, context_, there.letter ? there.letter->bytes.size() : 0);
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
  if (new_id_ != old_id) unit_.erase(Family::dead_letters, old_id.view());
  encode_dead_letter(letter, unit_.record);
  unit_.put(Family::dead_letters, new_id_.view(), unit_.record);
}

void OperatorChanges::take_verdict(DeadLetter &letter) const {
  letter.id = new_id_;
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

// The reason is part of the id, so a dead letter with another reason lies elsewhere.
DeadLetterId OperatorChanges::id_after_verdict(const DeadLetter &letter) {
  const Outcome outcome = verdict_.settlement.outcome;
  if (removes(outcome)) return letter.id;
  return dead_letter_id(defect_ ? nullptr : &key_, digest_, letter.bytes, outcome, unit_.digester);
}

// --- A purge, step by step ------------------------------------------------------------------------------------------

Result<OperatorChanges::Turn> OperatorChanges::try_purge(const DeadLetterId &id, const Operator &who) {
  const auto seen = read(id);
  if (!seen && seen.error().code != ErrorCode::corrupt) return tl::unexpected(seen.error());
  if (seen) {
    parse(*seen);
  } else if (auto found = find_job(id); !found) {
    return tl::unexpected(found.error());
  }
  turn_ = Turn::done;
  const auto step = [&] {
    if (lock_claim(id)) unit_.erase(Family::operations, key_.bytes);
    const Locked locked = lock_letter(id);
    if (!locked.exists || locked.letter.has_value() != seen.has_value()) {
      turn_ = Turn::overtaken;
      return false;
    }
    unit_.erase(Family::dead_letters, id.view());
    count_letter_removed(unit_, context_, locked.letter ? locked.letter->bytes.size() : 0);
    // Of a suspect nothing is known any more: delivered again, the job is a new one.
    if (seen && !defect_ && context_.suspects.find(key_.bytes)) put_suspicion(std::nullopt);
    AuditRow row;
    row.action = "purge";
    row.dead_letter = id;
    put_audit(std::move(row), who);
    return true;
  };
  const auto ended = unit_.run(changing, step);
  if (!ended) return tl::unexpected(ended.error());
  return *ended == UnitOfWork::Ended::contended ? Turn::contended : turn_;
}

// The job of a damaged dead letter, which cannot say it: where it is a queued one that has failed, its row tells by its
// key and digest whose it is. What of the rows cannot be read is left as it is.
Result<void> OperatorChanges::find_job(const DeadLetterId &id) {
  defect_ = JobDefect::malformed;
  RecordDecoder decoder;
  const auto visit = [&](BytesView key, BytesView value) {
    const auto row = decoder.operation(value);
    if (!row || row->phase != Phase::failed) return true;
    key_.bytes.assign(key);
    digest_ = row->digest;
    if (dead_letter_id(key_, digest_, Outcome::failed, unit_.digester) != id) return true;
    defect_.reset();
    return false;
  };
  auto scanned = context_.engine.view()->scan({.family = Family::operations}, visit);
  if (scanned || scanned.error().code == ErrorCode::corrupt) return {};
  context_.gate.close(scanned.error());
  return scanned;
}

// Whether the key's row is there only because of this dead letter: that of a queued job that has failed.
bool OperatorChanges::lock_claim(const DeadLetterId &id) {
  if (defect_ || dead_letter_id(key_, digest_, Outcome::failed, unit_.digester) != id) return false;
  KeyRow row;
  row.read(unit_.lock(Family::operations, key_.bytes), unit_.decoder);
  return row.state == KeyRow::State::present && row.phase == Phase::failed && row.digest == digest_;
}

// --- In a unit ------------------------------------------------------------------------------------------------------

OperatorChanges::Locked OperatorChanges::lock_letter(const DeadLetterId &id) {
  Locked locked;
  const Found found = unit_.lock(Family::dead_letters, id.view());
  locked.exists = found.state != Found::State::absent;
  if (found.state == Found::State::present) locked.letter = unit_.decoder.dead_letter(id, found.value);
  return locked;
}

void OperatorChanges::change_suspicion() {
  if (verdict_.suspicion == Suspicion::none) return;
  if (verdict_.suspicion == Suspicion::cleared) return put_suspicion(std::nullopt);
  auto count = context_.suspects.find(key_.bytes);
  if (count) count->redriven = false; // this redrive is answered
  put_suspicion(count);
}

// Nothing: it is no suspect any more.
void OperatorChanges::put_suspicion(const std::optional<CrashCount> &count) {
  put_crash_count(unit_, key_.bytes, count);
  unit_.after_commit(
      [this, count] { count ? context_.suspects.set(key_.bytes, *count) : context_.suspects.remove(key_.bytes); });
}

void OperatorChanges::put_audit(AuditRow row, const Operator &who) {
  AuditRange after = audit_;
  row.number = ++after.last;
  row.at = unit_.now();
  row.by = who.by;
  row.why = who.why;
  encode_audit(row, unit_.record);
  unit_.put(Family::meta, audit_name(after.last), unit_.record);
  for (; after.last - after.first >= context_.options.audit_rows_max; ++after.first)
    unit_.erase(Family::meta, audit_name(after.first));
  unit_.after_commit([this, after] { audit_ = after; });
}

void OperatorChanges::tell_queued(const Key &key, std::string_view type, WallTime accepted_at) {
  if (context_.options.observer != nullptr) context_.options.observer->queued(key.bytes, type, accepted_at);
}

} // namespace onced::store
