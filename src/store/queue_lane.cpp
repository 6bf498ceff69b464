#include "store/queue_lane.hpp"

#include <algorithm>

#include "rocksdb/measured_commit.hpp"
#include "rocksdb/slices.hpp"
#include "store/lane_writes.hpp"
#include "store/relay_queue.hpp"

namespace onced::store {
namespace {

constexpr std::string_view contended_job_detail = "other commits held the key for too long";
constexpr std::string_view damaged_job_detail =
    "the stored rows of this key are damaged; restore the data directory from a copy";

bool is_leased_under(const QueueRow &row, const FencingToken &token) {
  return (row.state == QueueState::leased || row.state == QueueState::calling) && row.token == token;
}

bool is_waiting(const QueueRow &row, const FencingToken &) {
  return row.state == QueueState::waiting;
}

void uncount_receive(QueueRow &row) {
  row.receives -= std::min<std::uint64_t>(row.receives, 1);
  row.receives_total -= std::min<std::uint64_t>(row.receives_total, 1);
}

} // namespace

QueueLane::QueueLane(CommitContext context, unsigned number, LaneCounters counters)
    : context_(context), counters_(counters), counters_name_(lane_counters_name(number)),
      bytes_name_(lane_bytes_name(number)) {}

// --- The steps ------------------------------------------------------------------------------------------------------

Result<Received> QueueLane::begin_receive(BytesView key, const FencingToken &token, const QueuedType &type) {
  Received received;
  const auto step = [&](LockedJob &locked, rocksdb::Status &status) {
    using Answer = Received::Answer;
    received.answer = Answer::busy;
    if (locked.state == LockedJob::State::gone) received.answer = Answer::gone;
    if (locked.state != LockedJob::State::there || !is_intact(key, locked, received.job)) return false;
    QueueRow &row = locked.row;
    if (row.state == QueueState::held) received.answer = Answer::held;
    if (row.state != QueueState::held && token <= row.token) received.answer = Answer::stale;
    if (received.answer != Answer::busy) return false;

    if (row.state == QueueState::calling) row.effect_unknown = true; // that call never settled
    row.state = type.external ? QueueState::calling : QueueState::leased;
    row.owner = type.external ? type.owner : std::string();
    row.token = token;
    ++row.receives;
    ++row.receives_total;
    status = put_row(key, row);
    received.row = std::move(row);
    received.row.bytes = Bytes();
    received.answer = Answer::job;
    return true;
  };
  const auto done = change(key, {KillPoint::queue_before_receive, KillPoint::queue_after_receive}, step);
  if (!done) return tl::unexpected(done.error());
  if (!*done) received.answer = Received::Answer::busy;
  if (received.answer == Received::Answer::busy) received.detail = *done ? damaged_job_detail : contended_job_detail;
  return received;
}

Result<QueueSettled> QueueLane::give_back(BytesView key, const FencingToken &token) {
  QueueSettled settled = QueueSettled::busy;
  const auto step = [&](LockedJob &locked, rocksdb::Status &status) {
    settled = locked.state == LockedJob::State::damaged ? QueueSettled::busy : QueueSettled::stale;
    if (locked.state != LockedJob::State::there || !is_leased_under(locked.row, token)) return false;
    QueueRow &row = locked.row;
    row.state = QueueState::waiting;
    uncount_receive(row);
    status = put_row(key, row);
    settled = QueueSettled::waiting;
    return true;
  };
  const auto done = change(key, {KillPoint::queue_before_settle, KillPoint::queue_after_settle}, step);
  if (!done) return tl::unexpected(done.error());
  return *done ? settled : QueueSettled::busy;
}

Result<QueueSettled> QueueLane::settle(BytesView key, const FencingToken &token, const QueueEnding &ending) {
  if (ending.verdict == QueueVerdict::done) {
    if (auto checked = check_result(ending.result, parser_); !checked) return tl::unexpected(checked.error());
    if (auto checked = check_messages(ending.messages, parser_); !checked) return tl::unexpected(checked.error());
  }
  return end_where(is_leased_under, key, token, ending);
}

Result<QueueSettled> QueueLane::exhaust(BytesView key, std::string_view error) {
  QueueEnding ending;
  ending.verdict = QueueVerdict::exhausted;
  ending.error = error;
  return end_where(is_waiting, key, {}, ending);
}

// --- How a lease ends -----------------------------------------------------------------------------------------------

Result<QueueSettled> QueueLane::end_where(MayEnd may_end, BytesView key, const FencingToken &token,
                                          const QueueEnding &ending) {
  QueueSettled settled = QueueSettled::busy;
  std::uint64_t bytes = 0;
  const auto step = [&](LockedJob &locked, rocksdb::Status &status) {
    settled = locked.state == LockedJob::State::damaged ? QueueSettled::busy : QueueSettled::stale;
    if (locked.state != LockedJob::State::there || !may_end(locked.row, token)) return false;
    bytes = locked.row.bytes.size();
    settled = end(key, locked, ending, status);
    return settled != QueueSettled::busy;
  };
  const auto done = change(key, {KillPoint::queue_before_settle, KillPoint::queue_after_settle}, step);
  if (!done) return tl::unexpected(done.error());
  if (!*done) return QueueSettled::busy;
  const bool left = settled == QueueSettled::committed || settled == QueueSettled::failed;
  if (left) context_.queue_room.release({.rows = 1, .bytes = bytes});
  return settled;
}

QueueSettled QueueLane::end(BytesView key, LockedJob &locked, const QueueEnding &ending, rocksdb::Status &status) {
  QueueRow &row = locked.row;
  if (ending.verdict == QueueVerdict::done) {
    bool refused = false;
    status = commit_result(key, locked, ending, refused);
    return refused ? QueueSettled::busy : QueueSettled::committed;
  }
  if (!ending.handed_over) uncount_receive(row);
  keep_error(row.errors, ending.error);
  if (ending.effect == QueueEffect::absent) row.effect_unknown = false;
  if (ending.effect == QueueEffect::unknown || ending.verdict == QueueVerdict::unknown) row.effect_unknown = true;
  if (ending.verdict == QueueVerdict::refused || ending.verdict == QueueVerdict::exhausted) {
    bool refused = false;
    status = bury(key, locked, refused);
    return refused ? QueueSettled::busy : QueueSettled::failed;
  }
  const bool held = ending.verdict == QueueVerdict::unknown;
  row.state = held ? QueueState::held : QueueState::waiting;
  status = put_row(key, row);
  return held ? QueueSettled::held : QueueSettled::waiting;
}

// `refused`: the relay is at its cap, and nothing may be written.
rocksdb::Status QueueLane::commit_result(BytesView key, const LockedJob &locked, const QueueEnding &ending,
                                         bool &refused) {
  refused = !prepare_messages(key, locked.row, ending.messages);
  if (refused) return {};
  encode_operation(operation_record(Phase::committed, locked.row, locked.digest, ending.result, now_), record_);
  auto status = transaction_->Put(context_.database.operations(), slice_of(key), slice_of(record_), true);
  if (status.ok()) status = put_relayed(*transaction_, context_.database, relayed_, record_);
  ++new_counters_.results;
  new_counters_.relay.add(amount_of(relayed_));
  return status.ok() ? take_out(key, locked.row) : status;
}

// False: there is no room for them.
bool QueueLane::prepare_messages(BytesView key, const QueueRow &row, const std::vector<RelayMessage> &messages) {
  if (messages.empty()) return true;
  Job job;
  const bool parsed = parser_.parse(row.bytes, job).has_value();
  auto entries = relay_entries(messages, key, parsed ? job.traceparent : std::string(), now_, digester_, parser_);
  if (!context_.relay_room.reserve(amount_of(entries))) return false;
  relayed_ = std::move(entries);
  return true;
}

// `refused`: the dead letters are at their cap, and nothing may be written.
rocksdb::Status QueueLane::bury(BytesView key, const LockedJob &locked, bool &refused) {
  const DeadLetterId id = dead_letter_id(Key{Bytes(key)}, locked.digest, Outcome::failed, digester_);
  DeadLetter letter = letter_of(id, locked.row, now_);
  letter.offered_digest = locked.digest;
  auto status = put_failed_letter(*transaction_, context_, std::move(letter), {new_counters_, letter_reserved_},
                                  decoder_, record_, refused);
  if (!status.ok() || refused) return status;
  encode_operation(operation_record(Phase::failed, locked.row, locked.digest, {}, now_), record_);
  status = transaction_->Put(context_.database.operations(), slice_of(key), slice_of(record_), true);
  return status.ok() ? take_out(key, locked.row) : status;
}

rocksdb::Status QueueLane::take_out(BytesView key, const QueueRow &row) {
  new_counters_.queue.remove(row.bytes.size());
  return transaction_->DeleteUntracked(context_.database.queue(), slice_of(key));
}

rocksdb::Status QueueLane::put_row(BytesView key, QueueRow &row) {
  row.changed_at = now_;
  encode_queued(row, record_);
  return transaction_->PutUntracked(context_.database.queue(), slice_of(key), slice_of(record_));
}

// --- The transaction ------------------------------------------------------------------------------------------------

Result<bool> QueueLane::change(BytesView key, const KillPoints &points, const Step &step) {
  for (unsigned tries = 0; tries <= limits::commit_retries_max; ++tries) {
    begin();
    LockedJob locked;
    auto status = lock_job(*transaction_, context_.database, key, decoder_, locked);
    if (status.ok() && !step(locked, status) && status.ok()) {
      abandon();
      return true;
    }
    if (status.ok()) status = put_counters();
    if (status.ok()) status = commit(points);
    if (status.ok()) return true;
    abandon();
    if (!is_retryable(status)) return tl::unexpected(write_error(status, context_.database.path()));
  }
  return false;
}

// Whether the bytes are still the job that was accepted under this key.
bool QueueLane::is_intact(BytesView key, const LockedJob &locked, Job &job) {
  if (!parser_.parse(locked.row.bytes, job)) return false;
  Key own;
  assign_key(job, own);
  return own.bytes == key && digester_.intent(job.type, job.payload) == locked.digest;
}

rocksdb::Status QueueLane::put_counters() {
  if (new_counters_.queue.removed == counters_.queue.removed) return {};
  return put_lane_counters(*transaction_, context_.database, new_counters_, counters_name_, bytes_name_,
                           letter_reserved_.bytes != 0, record_);
}

void QueueLane::begin() {
  now_ = context_.clock.wall();
  new_counters_ = counters_;
  transaction_.reset(context_.database.transactions()->BeginTransaction(synced_write(), rocksdb::TransactionOptions(),
                                                                        transaction_.release()));
  transaction_->DisableIndexing(); // nothing is read back from the batch
}

rocksdb::Status QueueLane::commit(const KillPoints &points) {
  context_.arrive(points.before);
  auto status = measured_commit(context_.database, *transaction_, context_.clock, context_.options.counters);
  if (!status.ok()) return status;
  if (context_.options.durability == Durability::fsync) context_.database.mark_durable(*transaction_);
  counters_ = new_counters_;
  letter_reserved_ = {};
  context_.arrive(points.after);
  if (!relayed_.empty() && context_.options.observer != nullptr) context_.options.observer->relayed();
  relayed_.clear();
  return status;
}

void QueueLane::abandon() {
  const auto status = transaction_->Rollback(); // of a failed commit it fails too; the store is given up then
  status.PermitUncheckedError();
  context_.letter_room.release(std::exchange(letter_reserved_, {}));
  context_.relay_room.release(amount_of(std::exchange(relayed_, {})));
}

} // namespace onced::store
