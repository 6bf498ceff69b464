#include "store/commit_lane.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

#include "rocksdb/measured_commit.hpp"
#include "rocksdb/slices.hpp"
#include "rocksdb/tuning.hpp"
#include "store/lane_writes.hpp"
#include "store/relay_queue.hpp"

namespace onced::store {
namespace {

constexpr std::string_view contended_detail = "other commits held the same keys for too long";
constexpr std::string_view queue_full_detail = "the queue is at its cap; its jobs must be handled first";
constexpr std::string_view relay_full_detail = "the relay is at its cap; its messages must be sent on first";
constexpr std::string_view full_detail = "the dead letters are at their cap; purge or redrive some";
constexpr std::string_view allowance_detail =
    "too many bytes of dead letters at a time; sent again, they are taken later";
// What a row of a dead letter takes beside the bytes of its job.
constexpr std::uint64_t letter_row_bytes = 256;

rocksdb::WriteOptions write_options(Durability durability) {
  rocksdb::WriteOptions options;
  // sync: the commit returns after fdatasync of the log, and only then is the write visible (RocksDB,
  // WriteOptions::sync).
  options.sync = durability == Durability::fsync;
  return options;
}

} // namespace

CommitLane::CommitLane(CommitContext context, unsigned number, LaneCounters counters)
    : context_(context), counters_(counters), counters_name_(lane_counters_name(number)),
      bytes_name_(lane_bytes_name(number)), run_(context.suspects) {}

Result<std::vector<Settlement>> CommitLane::commit(std::span<const Delivery> batch, const Handlers &handlers) {
  batch_ = batch;
  now_ = context_.clock.wall();
  ask_cache();
  group_by_key();
  if (auto found = look_up(); !found) return tl::unexpected(found.error());
  context_.arrive(KillPoint::worker_looked_up);
  if (context_.options.delay_commit.count() > 0) std::this_thread::sleep_for(context_.options.delay_commit);
  settlements_.assign(batch_.size(), {});
  letter_of_.assign(batch_.size(), std::nullopt);
  unwritten_.assign(batch_.size(), true);
  decide(handlers);
  if (auto written = write(handlers); !written) return tl::unexpected(written.error());
  return std::exchange(settlements_, {});
}

// --- Look-up ------------------------------------------------------------------------------------------------------

void CommitLane::ask_cache() {
  if (cached_rows_.size() < batch_.size()) cached_rows_.resize(batch_.size());
  std::uint64_t found = 0;
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    cached_rows_[at].state = KeyRow::State::absent;
    if (batch_[at].job != nullptr && context_.cache.find(*batch_[at].key, cached_rows_[at])) ++found;
  }
  if (context_.options.counters != nullptr) context_.options.counters->cache_hits += found;
}

void CommitLane::group_by_key() {
  by_key_.clear();
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (batch_[at].job != nullptr && !cached_rows_[at].is_committed()) by_key_.push_back(at);
  }
  // The order in which keys are looked up and, later, locked: the same in every lane, so lanes never wait in a circle.
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
    group.claimed = false;
    group.held = false;
    group.locked = false;
    ++group_count_;
  }
}

// Only a short cut: what it finds needs no lock, and what it does not find is looked for again under the lock.
Result<void> CommitLane::look_up() {
  asked_.resize(group_count_);
  std::iota(asked_.begin(), asked_.end(), std::size_t{0});
  const auto status = read_rows();
  if (!status.ok()) return tl::unexpected(write_error(status, context_.database.path()));
  for (std::size_t at = 0; at < group_count_; ++at) {
    const Group &group = groups_[at];
    // What can be seen is on stable storage: a synced write is visible only after its sync.
    if (group.row.is_committed()) context_.cache.keep(*group.key, group.row.digest, group.row.result);
  }
  return {};
}

// Reads the rows of the groups that are asked for, in the order of their keys.
rocksdb::Status CommitLane::read_rows() {
  if (asked_.empty()) return rocksdb::Status::OK();
  read_keys_.clear();
  for (const std::size_t at : asked_)
    read_keys_.push_back(slice_of(groups_[at].key->bytes));
  if (read_values_.size() < asked_.size()) read_values_.resize(asked_.size());
  read_statuses_.assign(asked_.size(), {});
  context_.database.db()->MultiGet(rocksdb::ReadOptions(), context_.database.operations(), asked_.size(),
                                   read_keys_.data(), read_values_.data(), read_statuses_.data(), true);
  for (std::size_t at = 0; at < asked_.size(); ++at) {
    const rocksdb::Status &status = read_statuses_[at];
    if (!status.ok() && !status.IsNotFound() && !status.IsCorruption()) return status;
    KeyRow &row = groups_[asked_[at]].row;
    row.state = KeyRow::State::absent;
    if (status.ok()) row.read(view_of(read_values_[at]), decoder_);
    if (status.IsCorruption()) row.state = KeyRow::State::damaged;
    read_values_[at].Reset();
  }
  return rocksdb::Status::OK();
}

// --- Verdicts -----------------------------------------------------------------------------------------------------

// Settles what is not settled yet. After a transaction that was given up, this is done anew: what it had found may have
// changed.
void CommitLane::decide(const Handlers &handlers) {
  letters_.clear();
  cleared_.clear();
  for (std::size_t at = 0; at < group_count_; ++at)
    give_claim_up(groups_[at]);
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (unwritten_[at]) decide_one(at, handlers);
  }
}

// Its key is locked, and more is known of its row.
void CommitLane::decide_group_anew(Group &group, const Handlers &handlers) {
  forget_letters(group);
  give_claim_up(group);
  group.held = false;
  for (const std::size_t at : group.deliveries)
    decide_one(at, handlers);
}

// The dead letters of a job name its key, so no delivery of another group has a part in them.
void CommitLane::forget_letters(const Group &group) {
  for (const std::size_t at : group.deliveries) {
    if (letter_of_[at]) letters_.erase(*letter_of_[at]);
    letter_of_[at].reset();
  }
}

void CommitLane::decide_one(std::size_t at, const Handlers &handlers) {
  const Delivery &delivery = batch_[at];
  letter_of_[at].reset();
  unwritten_[at] = false;
  if (delivery.job == nullptr) return settle(at, verdict_of_defect(delivery.defect), Branch::no_job);
  if (cached_rows_[at].is_committed()) return settle_by_row(at, cached_rows_[at], Branch::cached);
  Group &group = groups_[group_of_[at]];
  if (group.held) { // it is settled when the other lane is through
    unwritten_[at] = true;
    return;
  }
  if (group.row.state == KeyRow::State::absent && !group.claimed) return run_handler(at, group, handlers);
  if (!group.claimed) return settle_by_row(at, group.row, group.locked ? Branch::locked : Branch::looked_up);
  settle(at, verdict_of_row(group.claim, *group.key, delivery.digest, digester_), Branch::in_batch);
  unwritten_[at] = true;
}

// The row is in the database, and so on stable storage.
void CommitLane::settle_by_row(std::size_t at, const KeyRow &row, Branch branch) {
  const Delivery &delivery = batch_[at];
  Verdict verdict = verdict_of_row(row, *delivery.key, delivery.digest, digester_);
  if (verdict.settlement.outcome == Outcome::accepted) verdict.settlement.detail = whereabouts(*delivery.key);
  if (verdict.settlement.outcome == Outcome::duplicate)
    context_.cache.keep_bytes(delivery.bytes, delivery.tag, row.result);
  settle(at, std::move(verdict), branch);
}

// Of a job in custody that is asked for again. Only words: where they cannot be read there are none.
std::string CommitLane::whereabouts(const Key &key) {
  rocksdb::PinnableSlice value;
  const auto status =
      context_.database.db()->Get(rocksdb::ReadOptions(), context_.database.queue(), slice_of(key.bytes), &value);
  const auto row = status.ok() ? decoder_.queued(view_of(value)) : std::nullopt;
  return row ? whereabouts_of(*row) : std::string();
}

void CommitLane::run_handler(std::size_t at, Group &group, const Handlers &handlers) {
  Verdict verdict = run_.verdict(*group.key, *batch_[at].job, handlers, parser_);
  if (verdict.suspicion == Suspicion::cleared) cleared_.push_back(group.key->bytes);
  if (!verdict.bury) {
    const std::string_view no_room = claim(at, group, verdict);
    if (!no_room.empty()) verdict.settlement = {.outcome = Outcome::busy, .result = {}, .detail = std::string(no_room)};
  }
  settle(at, std::move(verdict), Branch::absent);
}

// Where there is no room for what follows from it, says so, and nothing is claimed; empty otherwise.
std::string_view CommitLane::claim(std::size_t at, Group &group, const Verdict &verdict) {
  const bool queued = verdict.settlement.outcome == Outcome::accepted;
  if (queued && !context_.queue_room.reserve(batch_[at].bytes.size())) return queue_full_detail;
  if (!verdict.messages.empty()) {
    group.relayed =
        relay_entries(verdict.messages, group.key->bytes, batch_[at].job->traceparent, now_, digester_, parser_);
    if (!context_.relay_room.reserve(amount_of(group.relayed))) {
      group.relayed.clear();
      return relay_full_detail;
    }
  }
  group.claimed = true;
  group.claimant = at;
  group.claim.state = KeyRow::State::present;
  group.claim.phase = queued ? Phase::pending : Phase::committed;
  group.claim.digest = batch_[at].digest;
  group.claim.result = verdict.settlement.result;
  unwritten_[at] = true;
  return {};
}

// Nothing of it is written.
void CommitLane::give_claim_up(Group &group) {
  if (group.claimed && group.claim.phase == Phase::pending) {
    context_.queue_room.release({.rows = 1, .bytes = batch_[group.claimant].bytes.size()});
  }
  if (!group.relayed.empty()) context_.relay_room.release(amount_of(group.relayed));
  group.relayed.clear();
  group.claimed = false;
}

void CommitLane::settle(std::size_t at, Verdict verdict, Branch branch) {
  settlements_[at] = std::move(verdict.settlement);
  settlements_[at].branch = branch;
  if (verdict.bury) bury(at, verdict);
}

void CommitLane::bury(std::size_t at, const Verdict &verdict) {
  const Delivery &delivery = batch_[at];
  Settlement &settlement = settlements_[at];
  if (context_.letter_allowance.used_up()) { // before its bytes are hashed, which costs more than all else
    settlement = {
        .outcome = Outcome::busy, .result = {}, .detail = std::string(allowance_detail), .branch = settlement.branch};
    return;
  }
  const DeadLetterId id = dead_letter_id(delivery.job != nullptr ? delivery.key : nullptr, delivery.digest,
                                         delivery.bytes, settlement.outcome, digester_);
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

// --- The transaction ----------------------------------------------------------------------------------------------

Result<void> CommitLane::write(const Handlers &handlers) {
  // Keys that another lane is about to write are left for a second transaction, so that no commit waits for another's.
  Patience patience = Patience::none;
  for (unsigned retries = 0; retries < limits::commit_retries_max;) {
    if (std::none_of(unwritten_.begin(), unwritten_.end(), [](bool unwritten) { return unwritten; })) return {};
    auto step = try_write(patience, handlers);
    if (!step) return tl::unexpected(step.error());
    if (*step == Step::committed) {
      patience = Patience::wait;
      continue;
    }
    ++retries;
    decide(handlers);
  }
  for (std::size_t at = 0; at < group_count_; ++at)
    give_claim_up(groups_[at]);
  answer_busy_where_unwritten(contended_detail);
  return {};
}

Result<CommitLane::Step> CommitLane::try_write(Patience patience, const Handlers &handlers) {
  auto *transactions = context_.database.transactions();
  transaction_.reset(transactions->BeginTransaction(write_options(context_.options.durability),
                                                    rocksdb::TransactionOptions(), transaction_.release()));
  transaction_->DisableIndexing(); // nothing is read back from the batch

  LaneCounters counters = counters_;
  auto status = claim_keys(patience, handlers);
  if (status.ok()) status = put_letters();
  if (status.ok()) status = put_counters(counters);
  if (status.ok()) status = clear_suspects();
  if (status.ok() && transaction_->GetNumPuts() == 0) {
    abandon(); // other lanes have written everything, or are about to
    finish_written();
    return Step::committed;
  }
  if (status.ok()) {
    context_.arrive(KillPoint::worker_before_commit);
    status = measured_commit(context_.database, *transaction_, context_.clock, context_.options.counters);
  }
  if (status.ok()) {
    if (context_.options.durability == Durability::fsync) context_.database.mark_durable(*transaction_);
    counters_ = counters;
    reserved_ = {};
    for (const Bytes &key : std::exchange(cleared_, {}))
      context_.suspects.remove(key);
    context_.arrive(KillPoint::worker_after_commit);
    finish_written();
    return Step::committed;
  }
  abandon();
  if (is_retryable(status)) return Step::retry;
  return tl::unexpected(write_error(status, context_.database.path()));
}

// Locks the keys, finds them absent and writes their rows; where a row is there, it settles the deliveries.
rocksdb::Status CommitLane::claim_keys(Patience patience, const Handlers &handlers) {
  if (auto status = lock_keys(patience); !status.ok()) return status;
  if (auto status = read_rows(); !status.ok()) return status;
  for (const std::size_t at : asked_) {
    Group &group = groups_[at];
    group.locked = true;
    if (group.held || group.row.state != KeyRow::State::absent) decide_group_anew(group, handlers);
    if (!group.claimed) continue;
    if (auto status = put_row(group); !status.ok()) return status;
  }
  return rocksdb::Status::OK();
}

// All that this batch is about to write, and with patience those that another lane held.
rocksdb::Status CommitLane::lock_keys(Patience patience) {
  asked_.clear();
  if (patience == Patience::none) transaction_->SetLockTimeout(0);
  for (std::size_t at = 0; at < group_count_; ++at) {
    Group &group = groups_[at];
    if (!group.claimed && (!group.held || patience == Patience::none)) continue;
    auto status =
        transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.operations(), slice_of(group.key->bytes),
                                   static_cast<rocksdb::PinnableSlice *>(nullptr)); // only locks it
    if (status.ok()) {
      asked_.push_back(at);
    } else if (status.IsTimedOut() && patience == Patience::none) {
      give_claim_up(group);
      group.held = true;
      forget_letters(group);
    } else {
      return status;
    }
  }
  transaction_->SetLockTimeout(lock_timeout_ms);
  return rocksdb::Status::OK();
}

rocksdb::Status CommitLane::put_row(const Group &group) {
  const Delivery &claimant = batch_[group.claimant];
  encode_operation(operation_record(group.claim.phase, *claimant.job, group.claim.digest, group.claim.result,
                                    claimant.issued_at, now_, context_.options.durability),
                   record_);
  const auto key = slice_of(group.key->bytes);
  auto status = transaction_->Put(context_.database.operations(), key, slice_of(record_), true);
  if (!status.ok()) return status;
  if (group.claim.phase == Phase::committed)
    return put_relayed(*transaction_, context_.database, group.relayed, record_);
  encode_queued(queue_row_of(claimant, now_), record_);
  return transaction_->PutUntracked(context_.database.queue(), key, slice_of(record_));
}

rocksdb::Status CommitLane::put_letters() {
  bool refused = false;
  for (auto &[id, letter] : letters_) {
    letter.refused = {};
    if (auto status = put_letter(id, letter); !status.ok()) return status;
    refused = refused || !letter.refused.empty();
  }
  if (!refused) return {};
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (!letter_of_[at]) continue;
    const std::string_view why = letters_[*letter_of_[at]].refused;
    if (!why.empty()) settlements_[at] = {.outcome = Outcome::busy, .result = {}, .detail = std::string(why)};
  }
  return {};
}

rocksdb::Status CommitLane::put_letter(const DeadLetterId &id, Letter &letter) {
  // Counted where it is there already too: it is written anew.
  if (!context_.letter_allowance.take(batch_[letter.delivery].bytes.size() + letter_row_bytes)) {
    letter.refused = allowance_detail;
    return {};
  }
  rocksdb::PinnableSlice found;
  auto status =
      transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.dead_letters(), slice_of(id.view()), &found);
  if (!status.ok() && !status.IsNotFound()) return status;
  auto row = status.ok() ? decoder_.dead_letter(id, view_of(found)) : std::nullopt;
  if (status.IsNotFound()) {
    if (!reserve_dead_letter(letter)) letter.refused = full_detail;
    if (!letter.refused.empty()) return {};
  }
  if (row) {
    row->deliveries += letter.deliveries;
    row->last_at = now_;
  } else {
    row = describe_letter(id, letter); // a damaged row is written anew: its delivery is in hand
  }
  encode_dead_letter(*row, record_);
  return transaction_->Put(context_.database.dead_letters(), slice_of(id.view()), slice_of(record_), true);
}

rocksdb::Status CommitLane::clear_suspects() {
  for (const Bytes &key : cleared_) {
    auto status = transaction_->DeleteUntracked(context_.database.meta(), slice_of(crashes_name(key)));
    if (!status.ok()) return status;
  }
  return {};
}

rocksdb::Status CommitLane::put_counters(LaneCounters &counters) {
  for (std::size_t at = 0; at < group_count_; ++at) {
    const Group &group = groups_[at];
    if (!group.claimed) continue;
    if (group.claim.phase == Phase::committed) ++counters.results;
    if (group.claim.phase == Phase::pending) counters.queue.add(batch_[group.claimant].bytes.size());
    counters.relay.add(amount_of(group.relayed));
  }
  counters.dead_letters += reserved_.rows;
  counters.dead_letter_bytes += reserved_.bytes;
  if (counters.results == counters_.results && counters.dead_letters == counters_.dead_letters &&
      counters.queue.added == counters_.queue.added) {
    return {};
  }
  return put_lane_counters(*transaction_, context_.database, counters, counters_name_, bytes_name_,
                           reserved_.bytes != 0, record_);
}

// What was written is on stable storage now. Left are the deliveries of keys that another lane held.
void CommitLane::finish_written() {
  letters_.clear();
  letter_of_.assign(batch_.size(), std::nullopt);
  unwritten_.assign(batch_.size(), false);
  bool relayed = false;
  for (std::size_t at = 0; at < group_count_; ++at) {
    Group &group = groups_[at];
    if (group.claimed) {
      group.claimed = false;
      relayed = relayed || !group.relayed.empty();
      group.relayed.clear();
      if (group.claim.phase != Phase::committed) continue;
      // Sooner or later its next delivery is in the same bytes; who sends others has it looked up once.
      const Delivery &claimant = batch_[group.claimant];
      if (!context_.cache.keep_bytes(claimant.bytes, claimant.tag, group.claim.result)) {
        context_.cache.keep(*group.key, group.claim.digest, group.claim.result);
      }
    } else if (group.held) {
      for (const std::size_t delivery : group.deliveries)
        unwritten_[delivery] = true;
    }
  }
  if (relayed && context_.options.observer != nullptr) context_.options.observer->relayed();
}

// Gives up a transaction of which nothing was written, or nobody knows what was.
void CommitLane::abandon() {
  const auto status = transaction_->Rollback(); // of a failed commit it fails too; the store is given up then
  status.PermitUncheckedError();
  context_.letter_room.release(std::exchange(reserved_, {}));
}

void CommitLane::answer_busy_where_unwritten(std::string_view detail) {
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (unwritten_[at]) settlements_[at] = {.outcome = Outcome::busy, .result = {}, .detail = std::string(detail)};
  }
}

DeadLetter CommitLane::describe_letter(const DeadLetterId &id, const Letter &letter) const {
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

bool CommitLane::reserve_dead_letter(const Letter &letter) {
  const std::uint64_t bytes = batch_[letter.delivery].bytes.size();
  if (!context_.letter_room.reserve(bytes)) return false;
  ++reserved_.rows;
  reserved_.bytes += bytes;
  return true;
}

} // namespace onced::store
