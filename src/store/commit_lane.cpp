#include "store/commit_lane.hpp"

#include <algorithm>
#include <numeric>

#include "store/measured_commit.hpp"
#include "store/slices.hpp"

namespace onced::store {
namespace {

constexpr std::string_view contended_detail = "other commits held the same keys for too long";
constexpr std::string_view full_detail = "the dead letters are at their cap; purge or redrive some";

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
      bytes_name_(lane_bytes_name(number)) {}

Result<std::vector<Settlement>> CommitLane::commit(std::span<const Delivery> batch, const Handlers &handlers) {
  batch_ = batch;
  now_ = context_.clock.wall();
  group_by_key();
  if (auto found = look_up(); !found) return tl::unexpected(found.error());
  arrive(KillPoint::worker_looked_up);
  decide(handlers);
  if (auto written = write(handlers); !written) return tl::unexpected(written.error());
  return std::exchange(settlements_, {});
}

// --- Look-up ------------------------------------------------------------------------------------------------------

void CommitLane::group_by_key() {
  by_key_.clear();
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (batch_[at].job != nullptr) by_key_.push_back(at);
  }
  // The order in which keys are looked up and, later, locked: the same in every lane, so lanes never wait in a circle.
  std::sort(by_key_.begin(), by_key_.end(), [&](std::size_t left, std::size_t right) {
    const int order = batch_[left].key->bytes.compare(batch_[right].key->bytes);
    return order != 0 ? order < 0 : left < right;
  });
  group_of_.assign(batch_.size(), 0);
  group_count_ = 0;
  if (groups_.size() < by_key_.size()) groups_.resize(by_key_.size());
  for (const std::size_t at : by_key_) {
    const Key *key = batch_[at].key;
    if (group_count_ == 0 || *groups_[group_count_ - 1].key != *key) {
      Group &group = groups_[group_count_++];
      group.key = key;
      group.row.state = KeyRow::State::absent;
      group.claimed = false;
    }
    group_of_[at] = group_count_ - 1;
  }
}

// Only a short cut: what it finds needs no lock, and what it does not find is looked for again under the lock.
Result<void> CommitLane::look_up() {
  if (group_count_ == 0) return {};
  look_up_keys_.clear();
  for (std::size_t at = 0; at < group_count_; ++at)
    look_up_keys_.push_back(slice_of(groups_[at].key->bytes));
  if (look_up_values_.size() < group_count_) look_up_values_.resize(group_count_);
  look_up_statuses_.assign(group_count_, {});
  context_.database.db()->MultiGet(rocksdb::ReadOptions(), context_.database.operations(), group_count_,
                                   look_up_keys_.data(), look_up_values_.data(), look_up_statuses_.data(), true);
  for (std::size_t at = 0; at < group_count_; ++at) {
    const rocksdb::Status &status = look_up_statuses_[at];
    if (status.ok()) {
      take_row(groups_[at], view_of(look_up_values_[at]));
    } else if (status.IsCorruption()) {
      groups_[at].row.state = KeyRow::State::damaged;
    } else if (!status.IsNotFound()) {
      return tl::unexpected(status_error(status, context_.database.path()));
    }
    look_up_values_[at].Reset();
  }
  return {};
}

void CommitLane::take_row(Group &group, BytesView value) {
  group.claimed = false;
  group.row.read(value, decoder_);
}

// --- Verdicts -----------------------------------------------------------------------------------------------------

void CommitLane::decide(const Handlers &handlers) {
  settlements_.assign(batch_.size(), {});
  letter_of_.assign(batch_.size(), std::nullopt);
  unwritten_.assign(batch_.size(), false);
  letters_.clear();
  for (std::size_t at = 0; at < group_count_; ++at)
    groups_[at].claimed = false;
  for (std::size_t at = 0; at < batch_.size(); ++at)
    decide_one(at, handlers);
}

void CommitLane::decide_one(std::size_t at, const Handlers &handlers) {
  const Delivery &delivery = batch_[at];
  if (delivery.job == nullptr) return settle(at, verdict_of_defect(delivery.defect));
  Group &group = groups_[group_of_[at]];
  if (group.row.state == KeyRow::State::absent && !group.claimed) return run_handler(at, group, handlers);
  settle(at, verdict_of_row(group.row, *group.key, delivery.digest, digester_));
  unwritten_[at] = unwritten_[at] || group.claimed;
}

void CommitLane::run_handler(std::size_t at, Group &group, const Handlers &handlers) {
  Verdict verdict = verdict_of_handler(*batch_[at].job, handlers, parser_);
  if (!verdict.bury) {
    group.claimed = true;
    group.claimant = at;
    group.row.phase = Phase::committed;
    group.row.digest = batch_[at].digest;
    group.row.result = verdict.settlement.result;
    unwritten_[at] = true;
  }
  settle(at, std::move(verdict));
}

void CommitLane::settle(std::size_t at, Verdict verdict) {
  settlements_[at] = std::move(verdict.settlement);
  if (verdict.bury) bury(at, verdict.stored_digest);
}

void CommitLane::bury(std::size_t at, const std::optional<Digest> &stored_digest) {
  const Delivery &delivery = batch_[at];
  const Settlement &settlement = settlements_[at];
  const DeadLetterId id = dead_letter_id(delivery.job != nullptr ? delivery.key : nullptr, delivery.digest,
                                         delivery.bytes, settlement.outcome, digester_);
  letter_of_[at] = id;
  unwritten_[at] = true;
  Letter &letter = letters_[id];
  if (letter.deliveries++ == 0) {
    letter.delivery = at;
    letter.reason = settlement.outcome;
    letter.detail = settlement.detail;
    letter.stored_digest = stored_digest;
  }
}

// --- The transaction ----------------------------------------------------------------------------------------------

Result<void> CommitLane::write(const Handlers &handlers) {
  for (unsigned retries = 0; retries < limits::commit_retries_max;) {
    if (std::none_of(unwritten_.begin(), unwritten_.end(), [](bool unwritten) { return unwritten; })) return {};
    auto step = try_write();
    if (!step) return tl::unexpected(step.error());
    if (*step == Step::committed) return {};
    // After a lost race another lane has committed a key meanwhile; each such turn leaves fewer keys to claim.
    if (*step == Step::retry) ++retries;
    decide(handlers); // anew in either case: what the step had found of the dead letters may have changed too
  }
  answer_busy_where_unwritten(contended_detail);
  return {};
}

Result<CommitLane::Step> CommitLane::try_write() {
  auto *transactions = context_.database.transactions();
  transaction_.reset(transactions->BeginTransaction(write_options(context_.options.durability),
                                                    rocksdb::TransactionOptions(), transaction_.release()));
  transaction_->DisableIndexing(); // nothing is read back from the batch

  bool lost_race = false;
  LaneCounters counters = counters_;
  auto status = claim_keys(lost_race);
  if (status.ok() && !lost_race) status = put_letters();
  if (status.ok() && !lost_race) status = put_counters(counters);
  if (status.ok() && !lost_race) {
    arrive(KillPoint::worker_before_commit);
    status = measured_commit(*transaction_, context_.clock, context_.options.counters);
  }
  if (status.ok() && !lost_race) {
    if (context_.options.durability == Durability::fsync) context_.database.mark_durable();
    counters_ = counters;
    reserved_ = {};
    arrive(KillPoint::worker_after_commit);
    return Step::committed;
  }
  abandon();
  if (status.ok()) return Step::lost_race;
  if (is_retryable(status)) return Step::retry;
  return tl::unexpected(status_error(status, context_.database.path()));
}

// Locks every key that this batch claims, and finds it absent; writes its row. `lost_race`: one was there.
rocksdb::Status CommitLane::claim_keys(bool &lost_race) {
  rocksdb::PinnableSlice found;
  for (std::size_t at = 0; at < group_count_; ++at) {
    Group &group = groups_[at];
    if (!group.claimed) continue;
    auto status = transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.operations(),
                                             slice_of(group.key->bytes), &found);
    if (status.ok() || status.IsCorruption()) {
      lost_race = true;
      take_row(group, status.ok() ? view_of(found) : BytesView{});
      found.Reset();
      continue; // the others may be lost too
    }
    if (!status.IsNotFound()) return status;
    if (lost_race) continue;

    const Delivery &claimant = batch_[group.claimant];
    encode_operation(committed_record(*claimant.job, group.row.digest, group.row.result, claimant.issued_at, now_,
                                      context_.options.durability),
                     record_);
    auto put = transaction_->Put(context_.database.operations(), slice_of(group.key->bytes), slice_of(record_), true);
    if (!put.ok()) return put;
  }
  return {};
}

rocksdb::Status CommitLane::put_letters() {
  bool refused = false;
  for (auto &[id, letter] : letters_) {
    letter.refused = false;
    if (auto status = put_letter(id, letter); !status.ok()) return status;
    refused = refused || letter.refused;
  }
  if (!refused) return {};
  for (std::size_t at = 0; at < batch_.size(); ++at) {
    if (!letter_of_[at] || !letters_[*letter_of_[at]].refused) continue;
    settlements_[at] = {.outcome = Outcome::busy, .result = {}, .detail = std::string(full_detail)};
  }
  return {};
}

rocksdb::Status CommitLane::put_letter(const DeadLetterId &id, Letter &letter) {
  rocksdb::PinnableSlice found;
  auto status =
      transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.dead_letters(), slice_of(id.view()), &found);
  if (!status.ok() && !status.IsNotFound()) return status;
  auto row = status.ok() ? decoder_.dead_letter(id, view_of(found)) : std::nullopt;
  if (status.IsNotFound()) {
    letter.refused = !reserve_dead_letter(letter);
    if (letter.refused) return {};
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

rocksdb::Status CommitLane::put_counters(LaneCounters &counters) {
  for (std::size_t at = 0; at < group_count_; ++at)
    counters.results += groups_[at].claimed ? 1U : 0U;
  counters.dead_letters += reserved_.rows;
  counters.dead_letter_bytes += reserved_.bytes;
  if (counters.results == counters_.results && counters.dead_letters == counters_.dead_letters) return {};
  encode_counters(counters, record_);
  auto status = transaction_->PutUntracked(context_.database.meta(), counters_name_, slice_of(record_));
  if (!status.ok() || reserved_.bytes == 0) return status;
  encode_number(counters.dead_letter_bytes, record_);
  return transaction_->PutUntracked(context_.database.meta(), bytes_name_, slice_of(record_));
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
  return row;
}

bool CommitLane::reserve_dead_letter(const Letter &letter) {
  const std::uint64_t bytes = batch_[letter.delivery].bytes.size();
  if (!context_.letter_room.reserve(bytes)) return false;
  ++reserved_.rows;
  reserved_.bytes += bytes;
  return true;
}

void CommitLane::arrive(KillPoint point) {
  if (context_.options.kill_switch != nullptr) context_.options.kill_switch->arrive(point);
}

} // namespace onced::store
