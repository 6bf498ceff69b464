#include "store/batch_commit.hpp"

#include <algorithm>
#include <thread>

#include "store/row_changes.hpp"

namespace onced::store {
namespace {

using engine::Counter;
using engine::Family;
using engine::Found;
using engine::Patience;

constexpr std::string_view contended_detail = "other commits held the same keys for too long";
constexpr std::string_view queue_full_detail = "the queue is at its cap; its jobs must be handled first";
constexpr std::string_view relay_full_detail = "the relay is at its cap; its messages must be sent on first";
constexpr std::string_view letters_full_detail = "the dead letters are at their cap; purge or redrive some";
constexpr std::string_view allowance_detail =
    "too many bytes of dead letters at a time; sent again, they are taken later";
// What a row of a dead letter takes beside the bytes of its job.
constexpr std::uint64_t letter_row_bytes = 256;

// The same bad delivery, once more.
void fold_repeated(DeadLetter &letter, DeadLetter &&there) {
  there.deliveries += letter.deliveries;
  there.last_at = letter.last_at;
  letter = std::move(there);
}

} // namespace

Result<std::vector<Settlement>> BatchCommit::commit(std::span<const Delivery> batch, const Handlers &handlers) {
  batch_ = batch;
  now_ = context_.clock.wall();
  ask_cache();
  group_by_key();
  if (auto found = look_up(); !found) return tl::unexpected(found.error());
  context_.arrive(KillPoint::worker_looked_up);
  if (context_.options.delay_commit.count() > 0) std::this_thread::sleep_for(context_.options.delay_commit);
  settlements_.assign(batch_.size(), {});
  letter_of_.assign(batch_.size(), std::nullopt);
  unwritten_.assign(batch_.size(), false);
  letters_.clear();
  cleared_.clear();
  confirmed_ = false;
  for (std::size_t at = 0; at < batch_.size(); ++at)
    decide(at, &handlers);
  if (auto written = write(); !written) return tl::unexpected(written.error());
  tell_whereabouts();
  if (!confirmed_) { // all were duplicates, or known: they rest on what is in the same place
    if (auto confirmed = unit_.confirm(); !confirmed) return tl::unexpected(confirmed.error());
  }
  keep_in_cache();
  return std::exchange(settlements_, {});
}

// --- Look-up --------------------------------------------------------------------------------------------------------

void BatchCommit::ask_cache() {
  if (cached_rows_.size() < batch_.size()) cached_rows_.resize(batch_.size());
  std::uint64_t found = 0;
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    cached_rows_[at].state = KeyRow::State::absent;
    if (batch_[at].job != nullptr && context_.cache.find(*batch_[at].key, cached_rows_[at])) ++found;
  }
  if (context_.options.counters != nullptr) context_.options.counters->cache_hits += found;
}

void BatchCommit::group_by_key() {
  by_key_.clear();
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (batch_[at].job != nullptr && !cached_rows_[at].is_committed()) by_key_.push_back(at);
  }
  // The order in which keys are looked up and, later, locked: the same in every unit, so units never wait in a circle.
  std::sort(by_key_.begin(), by_key_.end(), [&](std::size_t left, std::size_t right) {
    const int order = batch_[left].key->bytes.compare(batch_[right].key->bytes);
    return order != 0 ? order < 0 : left < right;
  });
  group_of_.assign(batch_.size(), 0);
  group_count_ = 0;
  if (groups_.size() < by_key_.size()) groups_.resize(by_key_.size());
  for (std::size_t first = 0, end = 0; first < by_key_.size(); first = end) {
    Group &group = groups_[group_count_];
    group.key = batch_[by_key_[first]].key;
    for (end = first; end < by_key_.size() && *batch_[by_key_[end]].key == *group.key; ++end)
      group_of_[by_key_[end]] = group_count_;
    group.deliveries = std::span(by_key_).subspan(first, end - first);
    group.row.state = KeyRow::State::absent;
    group.locked = group.held = group.put = false;
    give_claim_up(group); // an earlier batch ended by an error
    ++group_count_;
  }
}

// Only a short cut: what it finds needs no lock, and what it does not find is looked for again when it is claimed.
Result<void> BatchCommit::look_up() {
  if (group_count_ == 0) return {};
  keys_.clear();
  for (std::size_t at = 0; at < group_count_; ++at)
    keys_.push_back(groups_[at].key->bytes);
  if (auto read = unit_.read(Family::operations, keys_, found_); !read) return read;
  for (std::size_t at = 0; at < group_count_; ++at)
    groups_[at].row.read(found_[at], unit_.decoder);
  return {};
}

// --- Verdicts -------------------------------------------------------------------------------------------------------

// Without handlers: its key's row is there.
void BatchCommit::decide(std::size_t at, const Handlers *handlers) {
  const Delivery &delivery = batch_[at];
  if (delivery.job == nullptr) return settle(at, verdict_of_defect(delivery.defect), Branch::no_job);
  if (cached_rows_[at].is_committed()) return settle_by_row(at, cached_rows_[at], Branch::cached);
  Group &group = groups_[group_of_[at]];
  if (group.claimed) {
    settle(at, verdict_of_row(group.claim, *group.key, delivery.digest, unit_.digester), Branch::in_batch);
    unwritten_[at] = true;
    return;
  }
  if (group.row.state == KeyRow::State::absent) return run_handler(at, group, *handlers);
  settle_by_row(at, group.row, group.locked ? Branch::locked : Branch::looked_up);
}

// The row is in the store.
void BatchCommit::settle_by_row(std::size_t at, const KeyRow &row, Branch branch) {
  const Delivery &delivery = batch_[at];
  settle(at, verdict_of_row(row, *delivery.key, delivery.digest, unit_.digester), branch);
}

void BatchCommit::run_handler(std::size_t at, Group &group, const Handlers &handlers) {
  Verdict verdict = run_.verdict(*group.key, *batch_[at].job, handlers, unit_.parser);
  if (verdict.suspicion == Suspicion::cleared) cleared_.push_back(group.key->bytes);
  if (!verdict.bury) {
    const std::string_view no_room = claim(at, group, verdict);
    if (!no_room.empty()) verdict.settlement = busy(no_room, Branch::absent);
  }
  settle(at, std::move(verdict), Branch::absent);
}

// Where there is no room for what follows from it, says so, and nothing is claimed; empty otherwise.
std::string_view BatchCommit::claim(std::size_t at, Group &group, Verdict &verdict) {
  const Delivery &delivery = batch_[at];
  const bool queued = verdict.settlement.outcome == Outcome::accepted;
  if (queued) {
    auto room = Reservation::take(context_.queue_room, {.rows = 1, .bytes = delivery.bytes.size()});
    if (!room) return queue_full_detail;
    group.queue_room = std::move(*room);
  }
  if (!verdict.messages.empty()) {
    auto entries = relay_entries(verdict.messages, group.key->bytes, delivery.job->traceparent, now_, unit_.digester,
                                 unit_.parser);
    auto room = Reservation::take(context_.relay_room, amount_of(entries));
    if (!room) return relay_full_detail;
    group.relay_room = std::move(*room);
    group.relayed = std::move(entries);
  }
  group.claimed = true;
  group.claimant = at;
  group.claim.state = KeyRow::State::present;
  group.claim.phase = queued ? Phase::pending : Phase::committed;
  group.claim.digest = delivery.digest;
  group.claim.result = verdict.settlement.result;
  encode_operation(operation_record(group.claim.phase, *delivery.job, group.claim.digest, group.claim.result,
                                    delivery.issued_at, now_, context_.options.durability),
                   group.record);
  unwritten_[at] = true;
  return {};
}

void BatchCommit::give_claim_up(Group &group) {
  group.claimed = false;
  group.relayed.clear();
  group.queue_room = {};
  group.relay_room = {};
}

void BatchCommit::settle(std::size_t at, Verdict verdict, Branch branch) {
  settlements_[at] = std::move(verdict.settlement);
  settlements_[at].branch = branch;
  if (verdict.bury) bury(at, verdict);
}

void BatchCommit::bury(std::size_t at, const Verdict &verdict) {
  const Delivery &delivery = batch_[at];
  Settlement &settlement = settlements_[at];
  if (context_.letter_allowance.used_up()) { // before its bytes are hashed, which costs more than all else
    settlement = busy(allowance_detail, settlement.branch);
    return;
  }
  const DeadLetterId id = dead_letter_id(delivery.job != nullptr ? delivery.key : nullptr, delivery.digest,
                                         delivery.bytes, settlement.outcome, unit_.digester);
  letter_of_[at] = id;
  unwritten_[at] = true;
  Letter &letter = letters_[id];
  if (letter.deliveries++ == 0) {
    letter.delivery = at;
    letter.reason = settlement.outcome;
    letter.detail = settlement.detail;
    letter.stored_digest = verdict.stored_digest;
    letter.stored_phase = verdict.stored_phase;
  }
}

// --- The unit -------------------------------------------------------------------------------------------------------

// Keys that another unit is about to put are left for a second one, so that no commit waits for another's.
Result<void> BatchCommit::write() {
  const UnitOfWork::Kind kind{
      .before = KillPoint::worker_before_commit, .after = KillPoint::worker_after_commit, .sync = context_.sync()};
  Patience patience = Patience::none;
  while (std::find(unwritten_.begin(), unwritten_.end(), true) != unwritten_.end()) {
    const auto ended = unit_.run(kind, [&] { return put(patience); });
    if (ended && *ended != UnitOfWork::Ended::contended) {
      confirmed_ = *ended == UnitOfWork::Ended::written;
      finish_written();
      patience = Patience::wait;
      continue;
    }
    for (std::size_t at = 0; at < group_count_; ++at)
      give_claim_up(groups_[at]);
    if (!ended) return tl::unexpected(ended.error());
    answer_busy_where_unwritten(contended_detail);
    break;
  }
  return {};
}

// Claims the keys of new jobs, puts their rows and the dead letters. False: there is nothing to put, since others have
// put everything, or are about to.
bool BatchCommit::put(Patience patience) {
  claim_keys(patience);
  bool any = false;
  for (const std::size_t at : asked_) {
    if (!groups_[at].put) continue;
    put_group(groups_[at]);
    any = true;
  }
  any = put_letters() || any;
  if (!any) return false;
  for (const Bytes &key : cleared_)
    unit_.erase(Family::meta, crashes_name(key));
  unit_.after_commit([this] {
    for (const Bytes &key : std::exchange(cleared_, {}))
      context_.suspects.remove(key);
  });
  return true;
}

void BatchCommit::claim_keys(Patience patience) {
  asked_.clear();
  claims_.clear();
  for (std::size_t at = 0; at < group_count_; ++at) {
    Group &group = groups_[at];
    group.put = group.held = false;
    if (!group.claimed) continue;
    asked_.push_back(at);
    claims_.push_back({.key = group.key->bytes, .value = group.record});
  }
  if (claims_.empty()) return;
  unit_.claim(Family::operations, claims_, patience, found_);
  if (unit_.has_failed()) return;
  for (std::size_t at = 0; at < asked_.size(); ++at) {
    Group &group = groups_[asked_[at]];
    group.put = found_[at].state == Found::State::absent;
    group.held = found_[at].state == Found::State::held;
    if (group.put || group.held) continue;
    group.row.read(found_[at], unit_.decoder);
    yield_to(group);
  }
}

// Another unit has put the group's row since the look-up: that row settles its deliveries.
void BatchCommit::yield_to(Group &group) {
  give_claim_up(group);
  group.locked = true;
  for (const std::size_t at : group.deliveries) {
    // The dead letters of a job name its key, so no delivery of another group has a part in them.
    if (letter_of_[at]) letters_.erase(*letter_of_[at]);
    letter_of_[at].reset();
    unwritten_[at] = false;
  }
  for (const std::size_t at : group.deliveries)
    decide(at, nullptr);
}

void BatchCommit::put_group(const Group &group) {
  if (group.claim.phase == Phase::committed) {
    unit_.add(Counter::results, 1);
    return put_relayed(unit_, group.relayed);
  }
  const Delivery &claimant = batch_[group.claimant];
  encode_queued(queue_row_of(claimant, now_), unit_.record);
  unit_.put(Family::queue, group.key->bytes, unit_.record);
  unit_.add(Counter::queued, 1);
  unit_.add(Counter::queued_bytes, claimant.bytes.size());
}

bool BatchCommit::put_letters() {
  bool any = false;
  for (auto &[id, letter] : letters_) {
    if (!is_held(letter.delivery)) any = put_letter_of(id, letter) || any;
  }
  return any;
}

bool BatchCommit::put_letter_of(const DeadLetterId &id, Letter &letter) {
  letter.refused = {};
  // Counted where it is there already too: it is put anew.
  if (!context_.letter_allowance.take(batch_[letter.delivery].bytes.size() + letter_row_bytes)) {
    letter.refused = allowance_detail;
  } else if (!put_letter(unit_, context_, describe_letter(id, letter), fold_repeated)) {
    letter.refused = letters_full_detail;
  }
  return letter.refused.empty();
}

DeadLetter BatchCommit::describe_letter(const DeadLetterId &id, const Letter &letter) const {
  const Delivery &delivery = batch_[letter.delivery];
  DeadLetter row;
  row.id = id;
  row.reason = letter.reason;
  row.detail = letter.detail;
  row.bytes = Bytes(delivery.bytes);
  if (delivery.job != nullptr) {
    row.operation_id = delivery.job->operation_id;
    row.type = delivery.job->type;
    row.effect_key = delivery.job->effect_key;
    row.offered_digest = delivery.digest;
  }
  row.sender = delivery.sender;
  row.sequence = delivery.sequence;
  row.issued_at = delivery.issued_at;
  row.deliveries = letter.deliveries;
  row.first_at = now_;
  row.last_at = now_;
  row.stored_digest = letter.stored_digest;
  row.stored_phase = letter.stored_phase;
  return row;
}

bool BatchCommit::is_held(std::size_t at) const {
  return batch_[at].job != nullptr && !cached_rows_[at].is_committed() && groups_[group_of_[at]].held;
}

// What was put is where the mode says. Left are the deliveries of keys that another unit held.
void BatchCommit::finish_written() {
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (is_held(at)) continue;
    unwritten_[at] = false;
    if (!letter_of_[at]) continue;
    const std::string_view refused = letters_[*letter_of_[at]].refused;
    if (!refused.empty()) settlements_[at] = busy(refused, settlements_[at].branch);
  }
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (is_held(at) || !letter_of_[at]) continue;
    letters_.erase(*letter_of_[at]);
    letter_of_[at].reset();
  }
  bool relayed = false;
  for (const std::size_t at : asked_) {
    Group &group = groups_[at];
    if (!group.put) continue;
    relayed = relayed || !group.relayed.empty();
    group.queue_room.keep();
    group.relay_room.keep();
    give_claim_up(group);
    group.put = false;
    if (group.claim.phase != Phase::committed) continue;
    // Sooner or later its next delivery comes in the same bytes. One in other bytes is looked up once.
    const Delivery &claimant = batch_[group.claimant];
    if (!context_.cache.keep_bytes(claimant.bytes, claimant.tag, group.claim.result)) {
      context_.cache.keep(*group.key, group.claim.digest, group.claim.result);
    }
  }
  asked_.clear();
  if (relayed && context_.options.observer != nullptr) context_.options.observer->relayed();
}

void BatchCommit::answer_busy_where_unwritten(std::string_view detail) {
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (unwritten_[at]) settlements_[at] = busy(detail, settlements_[at].branch);
  }
}

// Of queued jobs that are asked for again. Only words: where they cannot be read there are none.
void BatchCommit::tell_whereabouts() {
  asked_.clear();
  keys_.clear();
  for (std::size_t at = 0; at < group_count_; ++at) {
    const Group &group = groups_[at];
    if (group.row.state != KeyRow::State::present || group.row.phase != Phase::pending) continue;
    asked_.push_back(at);
    keys_.push_back(group.key->bytes);
  }
  if (asked_.empty() || !unit_.read(Family::queue, keys_, found_)) return;
  for (std::size_t at = 0; at < asked_.size(); ++at) {
    if (found_[at].state != Found::State::present) continue;
    const auto row = unit_.decoder.queued(found_[at].value);
    for (const std::size_t delivery : groups_[asked_[at]].deliveries)
      if (row && settlements_[delivery].outcome == Outcome::accepted)
        settlements_[delivery].detail = whereabouts_of(*row);
  }
}

// What was read and has been confirmed since.
void BatchCommit::keep_in_cache() {
  for (std::size_t at = 0; at < group_count_; ++at) {
    const Group &group = groups_[at];
    if (group.row.is_committed()) context_.cache.keep(*group.key, group.row.digest, group.row.result);
  }
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    const Settlement &settled = settlements_[at];
    if (settled.outcome != Outcome::duplicate || settled.branch == Branch::in_batch) continue;
    context_.cache.keep_bytes(batch_[at].bytes, batch_[at].tag, settled.result);
  }
}

} // namespace onced::store
