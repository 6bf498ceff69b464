#include "store/job_queue.hpp"

#include <algorithm>

#include "store/reading.hpp"

namespace onced::store {
namespace {

using engine::Family;

constexpr std::string_view contended_job_detail = "other commits held the key for too long";
constexpr std::string_view damaged_job_detail =
    "the stored rows of this key are damaged; restore the data directory from a copy";

constexpr UnitOfWork::Kind receiving{.before = KillPoint::queue_before_receive,
                                     .after = KillPoint::queue_after_receive};
constexpr UnitOfWork::Kind settling{.before = KillPoint::queue_before_settle, .after = KillPoint::queue_after_settle};

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

// Whether the bytes are still the job that was accepted under this key.
bool is_intact(UnitOfWork &unit, BytesView key, const LockedJob &locked, Job &job) {
  if (!unit.parser.parse(locked.row.bytes, job)) return false;
  Key own;
  assign_key(job, own);
  return own.bytes == key && unit.digester.intent(job.type, job.payload) == locked.digest;
}

// The lease's end, once its row is locked. `busy`: nothing may be written.
class LeaseEnd {
public:
  LeaseEnd(UnitOfWork &unit, StoreContext &context, BytesView key, LockedJob &locked)
      : unit_(unit), context_(context), key_(key), locked_(locked) {}

  [[nodiscard]] QueueSettled settle(const QueueEnding &ending) {
    QueueRow &row = locked_.row;
    if (ending.verdict == QueueVerdict::done) return commit_result(ending);
    if (!ending.handed_over) uncount_receive(row);
    keep_error(row.errors, ending.error);
    if (ending.effect == QueueEffect::absent) row.effect_unknown = false;
    if (ending.effect == QueueEffect::unknown || ending.verdict == QueueVerdict::unknown) row.effect_unknown = true;
    if (ending.verdict == QueueVerdict::refused || ending.verdict == QueueVerdict::exhausted) return bury();
    const bool held = ending.verdict == QueueVerdict::unknown;
    row.state = held ? QueueState::held : QueueState::waiting;
    put_queued(unit_, key_, row);
    return held ? QueueSettled::held : QueueSettled::waiting;
  }

private:
  [[nodiscard]] QueueSettled commit_result(const QueueEnding &ending) {
    const auto entries = messages_of(ending);
    if (!unit_.reserve(context_.relay_room, amount_of(entries))) return QueueSettled::busy;
    put_operation(unit_, key_,
                  operation_record(Phase::committed, locked_.row, locked_.digest, ending.result, unit_.now()));
    unit_.add(engine::Counter::results, 1);
    take_out_queued(unit_, context_, key_, locked_.row);
    put_relayed(unit_, entries);
    StoreObserver *observer = context_.options.observer;
    if (!entries.empty() && observer != nullptr) unit_.after_commit([observer] { observer->relayed(); });
    return QueueSettled::committed;
  }

  [[nodiscard]] std::vector<RelayEntry> messages_of(const QueueEnding &ending) {
    if (ending.messages.empty()) return {};
    Job job;
    const bool parsed = unit_.parser.parse(locked_.row.bytes, job).has_value();
    return relay_entries(ending.messages, key_, parsed ? job.traceparent : std::string(), unit_.now(), unit_.digester,
                         unit_.parser);
  }

  [[nodiscard]] QueueSettled bury() {
    const DeadLetterId id = dead_letter_id(Key{Bytes(key_)}, locked_.digest, Outcome::failed, unit_.digester);
    DeadLetter letter = letter_of(id, locked_.row, unit_.now());
    letter.offered_digest = locked_.digest;
    put_operation(unit_, key_, operation_record(Phase::failed, locked_.row, locked_.digest, {}, unit_.now()));
    take_out_queued(unit_, context_, key_, locked_.row);
    return put_letter(unit_, context_, std::move(letter), fold_failed) ? QueueSettled::failed : QueueSettled::busy;
  }

  UnitOfWork &unit_;
  StoreContext &context_;
  BytesView key_;
  LockedJob &locked_;
};

} // namespace

// --- Reading --------------------------------------------------------------------------------------------------------

Result<QueuePage> JobQueue::queued(BytesView after, std::size_t rows) const {
  return page(after, rows, {}, SIZE_MAX);
}

Result<QueuePage> JobQueue::find_queued(BytesView after, std::size_t rows, const QueueFilter &filter) const {
  return page(after, rows, filter, limits::queue_scanned_max);
}

Result<QueuePage> JobQueue::page(BytesView after, std::size_t rows, const QueueFilter &filter,
                                 std::size_t scanned_max) const {
  QueuePage page;
  RecordDecoder decoder;
  Bytes last(after);
  std::size_t scanned = 0;
  const auto visit = [&](BytesView key, BytesView value) {
    if (key == after) return true;
    if (page.entries.size() == rows || scanned == scanned_max) {
      page.next = std::move(last); // there is at least this one more
      return false;
    }
    last = Bytes(key);
    ++scanned;
    auto row = decoder.queued(value);
    if (!row) ++page.damaged;
    if (!row || (filter.held_only && row->state != QueueState::held)) return true;
    if (!filter.type.empty() && row->type != filter.type) return true;
    row->bytes = Bytes();
    page.entries.push_back({.key = Bytes(key), .row = std::move(*row)});
    return true;
  };
  const auto read = context_.engine.view()->scan({.family = Family::queue, .from = after}, visit);
  if (!read) return tl::unexpected(read.error());
  return page;
}

Result<std::optional<QueueRow>> JobQueue::find(BytesView key) const {
  const auto value = context_.engine.view()->get(Family::queue, key);
  if (!value) return tl::unexpected(value.error());
  if (!*value) return std::nullopt;
  auto row = RecordDecoder().queued(**value);
  if (!row) return tl::unexpected(engine::damaged_row(context_.engine.place(), Family::queue, key));
  return row;
}

// --- Changing -------------------------------------------------------------------------------------------------------

Result<Received> JobQueue::begin_receive(BytesView key, const FencingToken &token, const QueuedType &type) {
  const auto unit = units_.take(context_);
  Received received;
  const auto step = [&] {
    using Answer = Received::Answer;
    LockedJob locked = lock_job(*unit, key);
    received.answer = Answer::busy;
    if (locked.state == LockedJob::State::gone) received.answer = Answer::gone;
    if (locked.state != LockedJob::State::there || !is_intact(*unit, key, locked, received.job)) return false;
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
    put_queued(*unit, key, row);
    received.row = std::move(row);
    received.row.bytes = Bytes();
    received.answer = Answer::job;
    return true;
  };
  const auto ended = unit->run(receiving, step);
  if (!ended) return tl::unexpected(ended.error());
  const bool contended = *ended == UnitOfWork::Ended::contended;
  if (contended) received.answer = Received::Answer::busy;
  if (received.answer == Received::Answer::busy)
    received.detail = contended ? contended_job_detail : damaged_job_detail;
  return received;
}

Result<QueueSettled> JobQueue::change(BytesView key, const FencingToken &token, MayChange may_change,
                                      const Change &change) {
  const auto unit = units_.take(context_);
  QueueSettled settled = QueueSettled::busy;
  const auto step = [&] {
    LockedJob locked = lock_job(*unit, key);
    settled = locked.state == LockedJob::State::damaged ? QueueSettled::busy : QueueSettled::stale;
    if (locked.state != LockedJob::State::there || !may_change(locked.row, token)) return false;
    settled = change(*unit, locked);
    return settled != QueueSettled::busy;
  };
  const auto ended = unit->run(settling, step);
  if (!ended) return tl::unexpected(ended.error());
  return *ended == UnitOfWork::Ended::contended ? QueueSettled::busy : settled;
}

Result<QueueSettled> JobQueue::give_back(BytesView key, const FencingToken &token) {
  return change(key, token, is_leased_under, [&](UnitOfWork &unit, LockedJob &locked) {
    locked.row.state = QueueState::waiting;
    uncount_receive(locked.row);
    put_queued(unit, key, locked.row);
    return QueueSettled::waiting;
  });
}

Result<QueueSettled> JobQueue::settle(BytesView key, const FencingToken &token, const QueueEnding &ending) {
  if (ending.verdict == QueueVerdict::done) {
    const auto unit = units_.take(context_);
    if (auto checked = check_result(ending.result, unit->parser); !checked) return tl::unexpected(checked.error());
    if (auto checked = check_messages(ending.messages, unit->parser); !checked) return tl::unexpected(checked.error());
  }
  return change(key, token, is_leased_under, [&](UnitOfWork &unit, LockedJob &locked) {
    return LeaseEnd(unit, context_, key, locked).settle(ending);
  });
}

Result<QueueSettled> JobQueue::exhaust(BytesView key, std::string_view error) {
  QueueEnding ending;
  ending.verdict = QueueVerdict::exhausted;
  ending.error = error;
  return change(key, {}, is_waiting, [&](UnitOfWork &unit, LockedJob &locked) {
    return LeaseEnd(unit, context_, key, locked).settle(ending);
  });
}

} // namespace onced::store
