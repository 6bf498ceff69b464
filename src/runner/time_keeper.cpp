#include "runner/time_keeper.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace onced::runner {
namespace {

using store::QueueSettled;
using store::QueueState;

// Of one look into the store: leases are seen to in between.
constexpr std::size_t rows_a_look = 256;
// Between tries to write what could not be written.
constexpr std::chrono::milliseconds pause_between_tries{1000};
constexpr std::size_t types_told_max = 64;
// Jobs ended in one turn, as each waits for the disk.
constexpr std::size_t ends_a_turn = 16;

constexpr std::string_view exhausted_error = "its receives are used up: its lease expired, or the worker ended with it";

} // namespace

void TimeKeeper::run() {
  while (!stopping_) {
    context_.schedule.beat(); // first: what was late is this thread
    context_.schedule.stop_if_due();
    end_expired();
    if (!exhausted_.empty()) end_exhausted();
    if (!walk_) begin_walk();
    if (walk_) {
      walk_on();
    } else {
      context_.schedule.wait(exhausted_.empty() ? std::nullopt : std::optional(pause_between_tries));
    }
  }
}

void TimeKeeper::look_again() {
  look_again_ = true;
  context_.schedule.nudge();
}

void TimeKeeper::stop() {
  stopping_ = true;
  context_.schedule.nudge();
}

// --- What the store holds -------------------------------------------------------------------------------------------

void TimeKeeper::begin_walk() {
  Walk walk;
  if (look_again_) {
    if (!context_.keeper.try_lease()) return; // it is looked at when it is open
    look_again_ = false;
    for (const auto &[name, type] : context_.handlers.queued_types())
      walk.wanted.insert(name);
    full_after_.clear();
    walk_ = std::move(walk);
    return;
  }
  const auto names = context_.schedule.begin_refill();
  if (names.empty()) return;
  walk.wanted.insert(names.begin(), names.end());
  std::optional<Bytes> start;
  for (const std::string_view name : names) {
    const auto from = full_after_.find(name);
    const Bytes key = from != full_after_.end() ? from->second : Bytes();
    start = start ? std::min(*start, key) : key;
  }
  walk.start = walk.after = *start;
  walk_ = std::move(walk);
}

void TimeKeeper::walk_on() {
  Result<store::QueuePage> page = store::QueuePage{};
  {
    auto store = context_.keeper.try_lease();
    if (store) page = store->queue().queued(walk_->after, rows_a_look);
    if (!store) look_again_ = true;
    if (!page && page.error().code == ErrorCode::store_unavailable) context_.keeper.report(page.error());
  }
  if (!page) {
    // What cannot be read is told by `verify`; the store's own failures have it opened, and so looked at, again.
    context_.log.write({.level = EventLevel::error,
                        .name = "queue.unreadable",
                        .fields = {{"concerns", page.error().concerns}, {"cause", page.error().cause}}});
  }
  if (!page || look_again_) {
    walk_.reset();
    return;
  }
  for (const store::QueueEntry &entry : page->entries) {
    if (walk_->wanted.empty() || (walk_->wrapped && entry.key > walk_->start)) {
      walk_.reset();
      return;
    }
    look_at(entry);
    walk_->after = entry.key;
  }
  if (page->next) {
    walk_->after = *page->next;
  } else if (!walk_->wrapped && !walk_->start.empty()) {
    walk_->wrapped = true;
    walk_->after.clear();
  } else {
    walk_.reset();
  }
}

void TimeKeeper::look_at(const store::QueueEntry &entry) {
  const store::QueueRow &row = entry.row;
  if (row.state == QueueState::held) return; // its owner decides
  const QueuedType *type = context_.handlers.queued(row.type);
  if (type != nullptr && walk_->wanted.find(row.type) == walk_->wanted.end()) return;
  const auto receives =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(row.receives, std::numeric_limits<std::uint32_t>::max()));
  switch (context_.schedule.add(entry.key, row.type, receives, row.accepted_at)) {
  case Leases::Added::waiting:
  case Leases::Added::known:
    return;
  case Leases::Added::full:
    full_after_[row.type] = walk_->after;
    walk_->wanted.erase(row.type);
    return;
  case Leases::Added::exhausted:
    // Where fewer are allowed now than before, and it touches the outside, it has one more, so that its policy is
    // asked.
    if (row.state == QueueState::waiting && type->external) {
      context_.schedule.add(entry.key, row.type, type->max_receive_count - 1, row.accepted_at);
    } else {
      begin_end(entry.key, row.state == QueueState::waiting ? FencingToken{} : row.token, row.type);
    }
    return;
  case Leases::Added::unhandled:
    if (unhandled_.size() >= types_told_max || !unhandled_.insert(row.type).second) return;
    context_.log.write({.level = EventLevel::warning, .name = "queue.unhandled", .fields = {{"type", row.type}}});
    return;
  }
}

// --- Leases that nobody extends -------------------------------------------------------------------------------------

void TimeKeeper::end_expired() {
  for (auto &lease : context_.schedule.expire()) {
    ++context_.counters.expired;
    context_.log.write({.level = EventLevel::warning,
                        .name = "lease.expired",
                        .fields = {{"type", std::string(lease.type)},
                                   {"token", text_of(lease.token)},
                                   {"exhausted", lease.exhausted}}});
    if (lease.exhausted) begin_end(std::move(lease.key), lease.token, lease.type);
  }
}

// Where there are too many, the store is looked through again once they have ended.
void TimeKeeper::begin_end(Bytes key, const FencingToken &token, std::string_view type) {
  if (exhausted_.size() >= limits::queue_jobs_in_memory) {
    too_many_exhausted_ = true;
    return;
  }
  exhausted_[std::move(key)] = {token, std::string(type)};
}

void TimeKeeper::end_exhausted() {
  auto job = exhausted_.upper_bound(ended_up_to_);
  for (std::size_t left = ends_a_turn; left > 0 && job != exhausted_.end() && !stopping_; --left) {
    ended_up_to_ = job->first;
    auto store = context_.keeper.try_lease();
    if (!store) return;
    const auto settled = end(store->queue(), job->first, job->second);
    if (!settled) return context_.keeper.report(settled.error());
    if (*settled == QueueSettled::failed) ++context_.counters.refused;
    if (*settled == QueueSettled::held) ++context_.counters.held;
    // One that is busy is tried again in another turn, and holds up no other.
    job = *settled == QueueSettled::busy ? std::next(job) : exhausted_.erase(job);
  }
  if (job == exhausted_.end()) ended_up_to_.clear();
  if (exhausted_.empty() && std::exchange(too_many_exhausted_, false)) look_again_ = true;
}

Result<QueueSettled> TimeKeeper::end(store::JobQueue &queue, BytesView key, const Exhausted &job) {
  if (job.token == FencingToken{}) return queue.exhaust(key, exhausted_error);
  const QueuedType *type = context_.handlers.queued(job.type);
  const bool external = type != nullptr && type->external;
  return queue.settle(key, job.token,
                      {.verdict = external ? store::QueueVerdict::unknown : store::QueueVerdict::exhausted,
                       .error = std::string(exhausted_error)});
}

} // namespace onced::runner
