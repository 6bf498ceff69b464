#include "runner/executor.hpp"

#include <algorithm>

#include <poll.h>

#include "base/check.hpp"
#include "base/utf8.hpp"
#include "onced/digest.hpp"
#include "runner/job_lock.hpp"

namespace onced::runner {
namespace {

using store::QueueEffect;
using store::QueueEnding;
using store::QueueSettled;
using store::QueueVerdict;
using Kind = AttemptEnd::Kind;
using Obstacle = Leases::Obstacle;

// Between tries to write what cannot be written now, as the dead letters are at their cap, say.
constexpr std::chrono::milliseconds first_pause{100};
constexpr std::chrono::milliseconds longest_pause{5'000};

// True: it was time; false: the worker stops.
bool pause(unsigned tries, int stop) {
  const auto wait = std::min(first_pause * (1U << std::min(tries, 10U)), longest_pause);
  pollfd stopped{stop, POLLIN, 0};
  return ::poll(&stopped, 1, static_cast<int>(wait.count())) == 0;
}

QueueEnding try_again(const Attempt &attempt, const store::QueueRow &row, std::string error, QueueEffect effect) {
  QueueEnding ending{.verdict = QueueVerdict::try_again, .error = std::move(error), .effect = effect};
  if (row.receives < attempt.type.max_receive_count) return ending;
  // Of an external job nobody says that it has failed while it may have had its effect.
  ending.verdict = attempt.type.external ? QueueVerdict::unknown : QueueVerdict::exhausted;
  return ending;
}

// `effect`: what is known from before this call.
QueueEnding ending_of(const Attempt &attempt, const store::QueueRow &row, AttemptEnd end, QueueEffect effect) {
  const bool external = attempt.type.external;
  switch (end.kind) {
  case Kind::done:
    return {
        .verdict = QueueVerdict::done, .result = std::move(end.done.result), .messages = std::move(end.done.messages)};
  case Kind::refused:
    return {.verdict = QueueVerdict::refused, .error = std::move(end.error), .effect = effect};
  case Kind::unknown:
    if (external) effect = QueueEffect::unknown;
    if (external && attempt.type.policy == EffectPolicy::hold) {
      return {.verdict = QueueVerdict::unknown, .error = std::move(end.error), .effect = effect};
    }
    break;
  case Kind::nothing:
  case Kind::not_started:
  case Kind::locked:
    break;
  }
  return try_again(attempt, row, std::move(end.error), effect);
}

QueueSettled settled_as(QueueVerdict verdict) {
  switch (verdict) {
  case QueueVerdict::done:
    return QueueSettled::committed;
  case QueueVerdict::refused:
  case QueueVerdict::exhausted:
    return QueueSettled::failed;
  case QueueVerdict::unknown:
    return QueueSettled::held;
  case QueueVerdict::try_again:
    break;
  }
  return QueueSettled::waiting;
}

// The end of an error, where a program says what went wrong, as long as a line of the log has room for it.
std::string tail_of(std::string_view error) {
  constexpr std::size_t bytes_max = 512;
  if (error.size() <= bytes_max) return std::string(error);
  return utf8::repaired(std::string("... ").append(error.substr(error.size() - bytes_max)), 2 * bytes_max);
}

bool runs_commands(const QueuedType &type) {
  return std::holds_alternative<HandlerCommand>(type.handler) || std::holds_alternative<HandlerCommand>(type.reconcile);
}

Event event_of(std::string_view name, EventLevel level, const Attempt &attempt, std::string_view why) {
  return {.level = level,
          .name = name,
          .fields = {{"type", attempt.job.type},
                     {"operation_id", attempt.job.operation_id},
                     {"attempt", std::uint64_t{attempt.number}},
                     {"token", attempt.fencing_token},
                     {"cause", tail_of(why)}}};
}

} // namespace

std::vector<std::string_view> executor_types(const Handlers &handlers) {
  std::vector<std::string_view> types;
  for (const auto &[name, type] : handlers.queued_types()) {
    if (has_handler(type)) types.insert(types.end(), type.concurrency, name);
  }
  return types;
}

Result<void> check_executors(const Handlers &handlers) {
  const std::size_t executors = executor_types(handlers).size();
  if (executors <= limits::handler_threads_max) return {};
  return tl::unexpected(Error{.code = ErrorCode::usage,
                              .concerns = "the concurrency of all handlers",
                              .cause = std::to_string(executors) + " threads are too many",
                              .remedy = "let them be " + std::to_string(limits::handler_threads_max) + " together"});
}

void Executor::run() {
  while (const auto hand_over = context_.schedule.take(type_)) {
    handle(*hand_over);
    context_.schedule.let_go(hand_over->key);
  }
}

void Executor::handle(const Leases::HandOver &hand_over) {
  const QueuedType *type = context_.handlers.queued(hand_over.type);
  ONCED_CHECK(type != nullptr);
  const std::string idempotency_key = idempotency_key_of(hand_over.key);
  const auto lock_file = context_.locks.file_of(idempotency_key);
  // Asked before the receive is counted: the job was not handed over then.
  if (std::holds_alternative<HandlerCommand>(type->handler) && former_child_runs(lock_file)) {
    context_.schedule.give_back(hand_over.token, Obstacle::job);
    return;
  }
  const auto received = receive(hand_over, *type);
  if (!received) return;
  if (context_.schedule.draining()) return take_back(hand_over, Obstacle::type, "the worker stops");
  const Attempt attempt{.type = *type,
                        .job = received->job,
                        .token = hand_over.token,
                        .fencing_token = text_of(hand_over.token),
                        .idempotency_key = idempotency_key,
                        .number = static_cast<std::uint32_t>(received->row.receives),
                        .lock_file = lock_file};
  const auto ending = this->attempt(hand_over, attempt, received->row);
  if (runs_commands(*type)) context_.locks.remove(lock_file);
  if (ending) write(hand_over, attempt, *ending);
}

bool Executor::former_child_runs(const std::filesystem::path &lock_file) {
  const auto is_free = lock_is_free(lock_file);
  return is_free && !*is_free; // where it cannot be asked, starting the command will tell
}

// Counts the receive. Nothing: the job is not to be handed over.
std::optional<store::Received> Executor::receive(const Leases::HandOver &hand_over, const QueuedType &type) {
  using Answer = store::Received::Answer;
  const auto ask = [&]() -> std::optional<Result<store::Received>> {
    auto store = context_.keeper.lease();
    if (!store) return std::nullopt;
    auto answer = store->queue().begin_receive(hand_over.key, hand_over.token, type);
    if (!answer) context_.keeper.report(answer.error());
    return answer;
  };
  auto received = ask();
  if (received && !*received) {
    take_back(hand_over, Obstacle::type, "the store failed");
    return std::nullopt;
  }
  if (received && (*received)->answer == Answer::job) return std::move(**received);

  if (!received || (*received)->answer == Answer::busy) { // the worker stops, or it is asked for again
    context_.schedule.give_back(hand_over.token, Obstacle::job);
  } else { // it has ended, or is its owner's
    context_.schedule.forget(hand_over.token);
  }
  return std::nullopt;
}

// The job was not handed over, so its receive is not used up.
void Executor::take_back(const Leases::HandOver &hand_over, Obstacle obstacle, std::string_view why) {
  const auto taken_back = change_store(
      [&](store::JobQueue &queue) { return queue.give_back(hand_over.key, hand_over.token); }, QueueSettled::waiting);
  context_.schedule.give_back(hand_over.token, obstacle);
  ++context_.counters.not_started;
  context_.log.write({.level = EventLevel::warning,
                      .name = "handler.not_started",
                      .fields = {{"type", std::string(hand_over.type)},
                                 {"cause", std::string(why)},
                                 {"receive_counted", !taken_back.has_value()}}});
}

// Runs the handler, or what its policy asks for first. Nothing: it could not be started.
std::optional<QueueEnding> Executor::attempt(const Leases::HandOver &hand_over, const Attempt &attempt,
                                             const store::QueueRow &row) {
  bool ran = false;
  bool calls = false; // the handler itself, not what is asked before it
  const auto on_started = [&] {
    if (calls) ++context_.counters.receives;
    if (!std::exchange(ran, true)) context_.schedule.started(attempt.token);
  };
  AttemptRunner runner(context_, on_started);
  QueueEffect effect = QueueEffect::as_known;
  AttemptEnd end{.kind = Kind::nothing};
  if (attempt.type.external && row.effect_unknown && attempt.type.policy == EffectPolicy::hold) {
    end = {.kind = Kind::unknown, .error = "an earlier call may have had its effect"};
  } else if (attempt.type.external && row.effect_unknown && attempt.type.policy == EffectPolicy::query) {
    end = runner.reconcile(attempt);
    if (end.kind == Kind::nothing) effect = QueueEffect::absent;
    if (end.kind == Kind::nothing || end.kind == Kind::done) ++context_.counters.reconciled;
  }
  if (end.kind == Kind::nothing) {
    calls = true;
    end = runner.call(attempt);
    calls = false;
  }
  if (!ran && (end.kind == Kind::not_started || end.kind == Kind::locked)) {
    take_back(hand_over, end.kind == Kind::locked ? Obstacle::job : Obstacle::type, end.error);
    return std::nullopt;
  }
  // It is held without a call, or can be given to no command.
  if (!ran) context_.schedule.started(attempt.token);
  QueueEnding ending = ending_of(attempt, row, std::move(end), effect);
  ending.handed_over = ran;
  return ending;
}

void Executor::write(const Leases::HandOver &hand_over, const Attempt &attempt, const QueueEnding &ending) {
  if (!context_.schedule.ended(attempt.token)) return count_late(attempt);
  const auto settled =
      change_store([&](store::JobQueue &queue) { return queue.settle(hand_over.key, attempt.token, ending); },
                   settled_as(ending.verdict));
  if (settled) return finish(hand_over, attempt, ending, *settled);
  // The worker stops. Its row says that it is leased: the next start hands it over again.
  context_.schedule.forget(attempt.token);
}

void Executor::finish(const Leases::HandOver &hand_over, const Attempt &attempt, const QueueEnding &ending,
                      QueueSettled settled) {
  QueueCounters &counters = context_.counters;
  settled == QueueSettled::waiting ? context_.schedule.retry(attempt.token) : context_.schedule.forget(attempt.token);
  switch (settled) {
  case QueueSettled::committed:
  case QueueSettled::failed: {
    const bool done = settled == QueueSettled::committed;
    ++(done ? counters.handled : counters.refused);
    context_.on_end({.key = hand_over.key,
                     .job = attempt.job,
                     .outcome = done ? Outcome::stored : Outcome::failed,
                     .result = ending.result});
    if (!done) context_.log.write(event_of("job.failed", EventLevel::warning, attempt, ending.error));
    return;
  }
  case QueueSettled::waiting:
    ++counters.tried_again;
    return context_.log.write(event_of("handler.failed", EventLevel::warning, attempt, ending.error));
  case QueueSettled::held:
    ++counters.held;
    context_.on_end({.key = hand_over.key,
                     .job = attempt.job,
                     .outcome = Outcome::accepted,
                     .detail = store::whereabouts_of_held(attempt.type.owner)});
    return context_.log.write(event_of("job.held", EventLevel::warning, attempt, ending.error));
  case QueueSettled::stale:
  case QueueSettled::busy: // which is asked for again until it is not
    return count_late(attempt);
  }
}

void Executor::count_late(const Attempt &attempt) {
  ++context_.counters.late;
  context_.log.write(
      event_of("handler.late", EventLevel::warning, attempt, "its lease was lost: nothing of it is kept"));
}

// Changes what the store says of a job: again after each reopening of the store, and while it is busy. `if_written` is
// what a stale token means once a try may have been written before the store failed. Nothing: the worker stops.
std::optional<QueueSettled> Executor::change_store(const Change &change, QueueSettled if_written) {
  bool may_be_written = false;
  for (unsigned tries = 0;; ++tries) {
    Result<QueueSettled> settled = QueueSettled::busy;
    {
      auto store = context_.keeper.lease();
      if (!store) return std::nullopt;
      settled = change(store->queue());
      if (!settled) context_.keeper.report(settled.error());
    }
    if (!settled) {
      ONCED_CHECK(settled.error().code != ErrorCode::usage);
      may_be_written = true;
      continue;
    }
    if (*settled == QueueSettled::stale && may_be_written) return if_written;
    if (*settled != QueueSettled::busy) return *settled;
    if (!pause(tries, context_.schedule.stop_descriptor())) return std::nullopt;
  }
}

} // namespace onced::runner
