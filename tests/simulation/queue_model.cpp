#include "queue_model.hpp"

#include <array>
#include <utility>

#include "base/messagepack.hpp"
#include "rules.hpp"

namespace simulation {

using onced::FencingToken;
using onced::MonotonicTime;
using onced::Outcome;
using onced::runner::LeaseOptions;
using onced::runner::Leases;
using onced::store::QueueSettled;
using onced::store::Received;

namespace {

onced::store::QueueEnding ending_of(const Event &event) {
  using onced::store::QueueVerdict;
  onced::store::QueueEnding ending;
  switch (event.ending) {
  case Ending::done:
    ending.verdict = QueueVerdict::done;
    ending.result = onced::messagepack::encode_number(event.result);
    break;
  case Ending::refused:
    ending.verdict = QueueVerdict::refused;
    break;
  case Ending::exhausted:
  case Ending::expired:
    ending.verdict = QueueVerdict::exhausted;
    break;
  case Ending::try_again:
    break;
  }
  return ending;
}

constexpr std::array<std::string_view, 2> type_names{"command", "function"};

} // namespace

// --- The process and its store --------------------------------------------------------------------------------------

void QueueModel::begin_life(std::uint32_t boot) {
  std::vector<LeaseOptions> types(type_names.size(), context_.plan.leases);
  for (std::size_t at = 0; at < types.size(); ++at)
    types[at].type = type_names[at];
  leases_.emplace(types, context_.mutated(Mutation::same_boot) ? 1 : boot, context_.chance.source());
  if (!context_.mutated(Mutation::forgotten_custody)) walk();
}

void QueueModel::on_crash() {
  if (!leases_) return;
  leases_.reset();
  held_.clear();
  ++life_;
  context_.tally.orphans +=
      runs_.on_crash(context_.ledger, context_.plan.orphan_percent, context_.chance, context_.now);
}

void QueueModel::on_reopen() {
  walk();
  for (const Event &event : std::exchange(held_, {}))
    context_.schedule_in(context_.chance.up_to(context_.plan.commit_max), event);
}

void QueueModel::walk() {
  constexpr std::size_t rows_at_once = 3;
  std::optional<onced::Bytes> after = onced::Bytes();
  while (after) {
    const auto page = store_.queue().queued(*after, rows_at_once);
    must(page && page->damaged == 0, rules::custody);
    for (const auto &[name, row] : page->entries) {
      const bool is_leased = row.state == onced::store::QueueState::leased;
      add(store_.key_named(name), row.type, static_cast<std::uint32_t>(row.receives),
          is_leased ? row.token : FencingToken());
    }
    after = page->next;
  }
}

void QueueModel::add_new(std::size_t key) {
  add(key, store_.type_of(key).type, 0, {});
}

void QueueModel::add(std::size_t key, std::string_view type, std::uint32_t receives, const FencingToken &token) {
  const auto added = leases_->add(store_.name_of(key), type, receives, context_.now, context_.now);
  if (added == Leases::Added::exhausted) begin_write(EventKind::settle, key, token, Ending::expired);
}

void QueueModel::begin_write(EventKind kind, std::size_t key, const FencingToken &token, Ending ending) {
  const auto owner = static_cast<std::uint8_t>(context_.ledger.row(key).owner);
  const Event event{.kind = kind, .job = owner, .life = life_, .token = token, .ending = ending};
  context_.schedule_in(context_.chance.up_to(context_.plan.commit_max), event);
}

// --- Leases ---------------------------------------------------------------------------------------------------------

std::optional<MonotonicTime> QueueModel::wake_at() const {
  return leases_ ? leases_->next_due(context_.now) : std::nullopt;
}

void QueueModel::on_wake() {
  for (const Leases::Expired &lease : leases_->expire(context_.now)) {
    ++context_.tally.expired;
    context_.trace("  worker: lease {}.{} expires", lease.token.boot, lease.token.count);
    runs_.on_expired(store_.key_named(lease.key), lease.token, context_.now);
    if (lease.exhausted) begin_write(EventKind::settle, store_.key_named(lease.key), lease.token, Ending::expired);
  }
  refill();
  take_due();
  const auto next = wake_at();
  must(!next || *next > context_.now, rules::lease_wakes);
}

// The walk of the queue that an opening of the store begins is a refill too.
void QueueModel::refill() {
  if (store_.is_open() && !leases_->begin_refill().empty()) walk();
}

void QueueModel::take_due() {
  for (const std::string_view type : type_names)
    take_due_of(type);
}

void QueueModel::take_due_of(std::string_view type) {
  while (const auto hand_over = leases_->take(type, context_.now)) {
    runs_.on_taken(hand_over->token);
    const std::size_t key = store_.key_named(hand_over->key);
    const bool is_locked = runs_as_command(key) && runs_.is_running(key, context_.now);
    if (!is_locked || context_.mutated(Mutation::ignored_lock)) {
      begin_write(EventKind::receive, key, hand_over->token);
      continue;
    }
    context_.trace("  worker: gives back job {}: its former command runs", context_.ledger.row(key).owner);
    ++context_.tally.given_back;
    must(leases_->give_back(hand_over->token, Leases::Obstacle::job, context_.now), rules::lease_kept);
  }
}

// --- Handlers -------------------------------------------------------------------------------------------------------

void QueueModel::start_or_give_back(const Event &received) {
  if (context_.calm() || !context_.chance.happens(context_.plan.not_started_percent)) return start(received);
  Event give_back = received;
  give_back.kind = EventKind::give_back;
  give_back.job_is_obstacle = context_.chance.happens(50);
  context_.schedule_in(context_.chance.up_to(context_.plan.commit_max), give_back);
}

void QueueModel::start(const Event &received) {
  const Plan &plan = context_.plan;
  must(leases_->started(received.token, context_.now), rules::lease_kept);
  const bool hangs = !context_.calm() && context_.chance.happens(plan.hang_percent);
  const auto beats_for = context_.chance.up_to(plan.execution_max);
  const auto lasts = hangs ? beats_for + context_.chance.up_to(plan.hang_max()) : beats_for;
  context_.trace("  worker: job {} is handed over{}", received.job, hangs ? ", and will hang" : "");
  ++context_.tally.hand_overs;
  runs_.on_started(
      key_of(received),
      {.token = received.token, .is_command = runs_as_command(key_of(received)), .ends = context_.now + lasts},
      context_.now);
  Event event = received;
  event.kind = EventKind::handler_end;
  context_.schedule_in(lasts, event);
  event.kind = EventKind::heartbeat;
  event.lasts = beats_for;
  schedule_heartbeat(event);
}

// `lasts`: how long the heart still beats.
void QueueModel::schedule_heartbeat(Event beat) {
  MonotonicTime::duration interval = context_.plan.leases.visibility_timeout / 3;
  if (context_.mutated(Mutation::rare_heartbeats)) interval *= 6;
  if (beat.lasts <= interval) return;
  beat.lasts -= interval;
  context_.schedule_in(interval, beat);
}

void QueueModel::on_heartbeat(const Event &event) {
  if (event.life != life_) return;
  must(leases_->heartbeat(event.token, context_.now), rules::lease_kept);
  runs_.on_heartbeat(key_of(event), event.token, context_.now);
  schedule_heartbeat(event);
}

void QueueModel::on_handler_end(const Event &event) {
  if (event.life != life_) return context_.trace("  forgotten: of an earlier life");
  const bool has_lease = leases_->ended(event.token);
  runs_.on_ended(key_of(event), event.token, has_lease, context_.now);
  Event settle = event;
  settle.kind = EventKind::settle;
  settle.ending = drawn_ending(event);
  settle.result = context_.ledger.next_result();
  if (!has_lease) {
    ++context_.tally.late;
    context_.trace("  worker: the handler is late");
    if (!context_.mutated(Mutation::ignored_token)) return;
  }
  context_.schedule_in(context_.chance.up_to(context_.plan.commit_max), settle);
}

Ending QueueModel::drawn_ending(const Event &handler_end) {
  if (context_.chance.happens(context_.plan.try_again_percent)) {
    const bool is_last = context_.ledger.row(key_of(handler_end)).receives >= context_.plan.leases.max_receive_count;
    return is_last ? Ending::exhausted : Ending::try_again;
  }
  return context_.jobs[handler_end.job].kind == JobKind::queued ? Ending::done : Ending::refused;
}

// --- Writes ---------------------------------------------------------------------------------------------------------

void QueueModel::before_write(const Event &event) {
  if (event.kind == EventKind::receive && context_.mutated(Mutation::late_receive)) start(event);
}

std::optional<bool> QueueModel::write(const Event &event) {
  if (event.kind == EventKind::receive) return write_receive(event);
  if (event.kind == EventKind::give_back) return write_give_back(event);
  const bool is_blind = event.again && context_.mutated(Mutation::blind_retry);
  if (!is_blind) store_.forget_before_unknown();
  store_.use_stale_locks(is_blind);
  const auto written = write_settlement(event);
  store_.use_stale_locks(false);
  return written;
}

std::optional<bool> QueueModel::write_receive(const Event &event) {
  const std::size_t key = key_of(event);
  const auto received = store_.queue().begin_receive(store_.name_of(key), event.token, store_.type_of(key));
  if (!received) return std::nullopt;
  must(received->answer != Received::Answer::busy, rules::custody);
  store_.observe({.kind = Cause::Kind::receive, .token = event.token});
  return received->answer == Received::Answer::job;
}

std::optional<bool> QueueModel::write_give_back(const Event &event) {
  const onced::Bytes &name = store_.name_of(key_of(event));
  const auto written = context_.mutated(Mutation::counted_give_back) ? store_.queue().settle(name, event.token, {})
                                                                     : store_.queue().give_back(name, event.token);
  if (!written) return std::nullopt;
  store_.observe({.kind = Cause::Kind::give_back, .token = event.token});
  return *written != QueueSettled::stale;
}

std::optional<bool> QueueModel::write_settlement(const Event &event) {
  const std::size_t key = key_of(event);
  const bool ignores_token = context_.mutated(Mutation::ignored_token);
  const FencingToken token = ignores_token ? context_.ledger.row(key).token : event.token;
  const bool has_lease = token != FencingToken();
  const auto settled = has_lease ? store_.queue().settle(store_.name_of(key), token, ending_of(event))
                                 : store_.queue().exhaust(store_.name_of(key), "its receives are used up");
  if (!settled) return std::nullopt;
  must(*settled != QueueSettled::busy && *settled != QueueSettled::held, rules::custody);
  store_.observe({.kind = has_lease ? Cause::Kind::settle : Cause::Kind::exhaust, .token = event.token});
  if (*settled == QueueSettled::stale) return false;
  if (event.ending == Ending::exhausted || event.ending == Ending::expired) {
    runs_.on_given_up(key);
    ++context_.tally.exhausted;
  }
  return true;
}

std::optional<Verdict> QueueModel::on_written(const Event &event, bool is_written) {
  std::optional<Verdict> answer;
  if (event.kind == EventKind::settle) {
    answer = on_settled(event, is_written);
  } else if (event.kind == EventKind::give_back) {
    ++context_.tally.given_back;
    const auto obstacle = event.job_is_obstacle ? Leases::Obstacle::job : Leases::Obstacle::type;
    must(leases_->give_back(event.token, obstacle, context_.now), rules::lease_kept);
  } else if (!is_written) { // it has ended
    leases_->forget(event.token);
  } else if (!context_.mutated(Mutation::late_receive)) {
    start_or_give_back(event);
  }
  refill();
  return answer;
}

// An end that may have been written before, and now finds that the row does not allow it, was written.
std::optional<Verdict> QueueModel::on_settled(const Event &event, bool is_written) {
  if (event.ending == Ending::expired) return std::nullopt;
  const bool try_again = event.ending == Ending::try_again && (is_written || event.again);
  try_again ? leases_->retry(event.token, context_.now) : leases_->forget(event.token);
  if (try_again || (!is_written && !event.again)) return std::nullopt;
  if (event.ending != Ending::done) return Verdict{Outcome::failed, 0};
  return Verdict{Outcome::stored, context_.ledger.row(key_of(event)).result};
}

// Once the store is open again a settlement is tried again, and a hand-over is taken back.
void QueueModel::on_unknown(const Event &event) {
  Event again = event;
  again.again = true;
  if (event.kind == EventKind::receive) again.kind = EventKind::give_back;
  hold(again);
}

} // namespace simulation
