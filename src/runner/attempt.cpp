#include "runner/attempt.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <stop_token>

#include "base/utf8.hpp"
#include "runner/answers.hpp"
#include "runner/command.hpp"

namespace onced::runner {
namespace {

using Kind = AttemptEnd::Kind;

// Of the visibility timeout, so that two heartbeats may be missed.
constexpr int heartbeats = 3;

std::chrono::milliseconds heartbeat_interval(const QueuedType &type) {
  return std::max(type.visibility_timeout / heartbeats, std::chrono::milliseconds(1));
}

CommandOptions options_of(const HandlerCommand &command, const QueuedType &type,
                          std::optional<std::uint64_t> descriptors_max) {
  return {.arguments = command.arguments,
          .environment = command.environment,
          .deadline = type.deadline,
          .grace = type.grace,
          .output_bytes_max = limits::command_output_bytes_max,
          .errors_bytes_max = limits::queue_error_bytes_max,
          .descriptors_max = descriptors_max};
}

AttemptEnd not_started(NotStarted why) {
  switch (why.reason) {
  case NotStarted::Reason::locked:
    return {.kind = Kind::locked, .error = std::move(why.cause)};
  case NotStarted::Reason::unfit:
    return {.kind = Kind::refused, .error = std::move(why.cause)};
  case NotStarted::Reason::command:
    break;
  }
  return {.kind = Kind::not_started, .error = std::move(why.cause)};
}

// The cause, and as much of the end of what the command wrote to its stderr as there is room for.
std::string error_of(const CommandEnd &end) {
  const std::string errors = utf8::repaired(end.errors, 3 * limits::queue_error_bytes_max);
  if (errors.empty()) return end.cause;
  const std::string cause = end.cause + ": ";
  const std::size_t room = limits::queue_error_bytes_max - std::min(cause.size(), limits::queue_error_bytes_max);
  return cause + errors.substr(errors.size() - std::min(room, errors.size()));
}

AttemptEnd end_of(QueuedResult result) {
  if (auto *invalid = std::get_if<Invalid>(&result))
    return {.kind = Kind::refused, .error = std::move(invalid->detail)};
  if (auto *failed = std::get_if<Failed>(&result)) return {.kind = Kind::refused, .error = std::move(failed->detail)};
  if (auto *again = std::get_if<TryAgain>(&result)) return {.kind = Kind::nothing, .error = std::move(again->error)};
  return {.kind = Kind::unknown, .error = std::move(std::get<EffectUnknown>(result).error)};
}

} // namespace

AttemptEnd AttemptRunner::call(const Attempt &attempt) {
  if (const auto *command = std::get_if<HandlerCommand>(&attempt.type.handler)) {
    return run_command(*command, attempt, [&](BytesView output) {
      auto done = done_of(output, attempt.type.messages);
      return done ? checked(std::move(*done)) : AttemptEnd{.kind = Kind::unknown, .error = std::move(done.error())};
    });
  }
  auto result = run_function(std::get<QueuedFunction>(attempt.type.handler), attempt);
  if (auto *done = std::get_if<Done>(&result)) return checked(std::move(*done));
  return runner::end_of(std::move(result));
}

AttemptEnd AttemptRunner::reconcile(const Attempt &attempt) {
  if (const auto *command = std::get_if<HandlerCommand>(&attempt.type.reconcile)) {
    bool answered = false;
    auto end = run_command(*command, attempt, [&](BytesView output) {
      answered = true;
      return end_of(reconciliation_of(output));
    });
    // Only what it writes says anything about the effect, and no way in which it ends.
    if (!answered && (end.kind == Kind::refused || end.kind == Kind::nothing)) end.kind = Kind::unknown;
    return end;
  }
  return end_of(run_function(std::get<ReconcileFunction>(attempt.type.reconcile), attempt));
}

// An exception is an unknown effect.
template <class Returned>
Returned AttemptRunner::run_function(const std::function<Returned(const QueuedCall &)> &function,
                                     const Attempt &attempt) {
  const std::stop_source stop;
  on_started_();
  context_.schedule.watch(attempt.token, attempt.type.deadline, heartbeat_interval(attempt.type), stop);
  const auto call = [&]() -> Returned {
    try {
      QueuedCall queued;
      static_cast<HandlerCall &>(queued) = {attempt.job.operation_id, attempt.job.type, attempt.job.traceparent,
                                            attempt.job.payload};
      queued.idempotency_key = attempt.idempotency_key;
      queued.fencing_token = attempt.fencing_token;
      queued.attempt = attempt.number;
      queued.stop = stop.get_token();
      return function(queued);
    } catch (const std::exception &exception) {
      return EffectUnknown{std::string("the handler threw: ") + exception.what()};
    } catch (...) {
      return EffectUnknown{"the handler threw something that is no std::exception"};
    }
  };
  auto result = call();
  context_.schedule.unwatch(attempt.token);
  return result;
}

tl::expected<Bytes, std::string> AttemptRunner::input_of(BytesView payload) {
  if (payload.size() > limits::command_payload_bytes_max) {
    return tl::unexpected("its payload has " + std::to_string(payload.size()) + " bytes; a command is given " +
                          std::to_string(limits::command_payload_bytes_max) + " at most");
  }
  const std::scoped_lock lock(context_.conversion);
  auto input = runner::input_of(payload);
  if (!input) return tl::unexpected(std::string("its payload has what JSON cannot say"));
  return std::move(*input);
}

template <class Read>
AttemptEnd AttemptRunner::run_command(const HandlerCommand &command, const Attempt &attempt, Read read) {
  const auto input = input_of(attempt.job.payload);
  if (!input) return {.kind = Kind::refused, .error = input.error()};
  const auto process = Command::start(options_of(command, attempt.type, context_.descriptors_max),
                                      {.input = *input,
                                       .operation_id = attempt.job.operation_id,
                                       .idempotency_key = attempt.idempotency_key,
                                       .attempt = attempt.number,
                                       .fencing_token = attempt.fencing_token,
                                       .traceparent = attempt.job.traceparent,
                                       .lock_file = attempt.lock_file},
                                      context_.clock);
  if (!process) return not_started(process.error());
  on_started_();
  CommandWatch watch;
  watch.stop = context_.schedule.stop_descriptor();
  watch.heartbeat = [&] { return context_.schedule.heartbeat(attempt.token); };
  watch.heartbeat_interval = heartbeat_interval(attempt.type);
  const CommandEnd end = (*process)->run(watch);
  switch (end.outcome) {
  case CommandEnd::Outcome::done:
    return read(end.output);
  case CommandEnd::Outcome::refused:
    return {.kind = Kind::refused, .error = error_of(end)};
  case CommandEnd::Outcome::try_again:
    break;
  }
  return {.kind = end.did_nothing ? Kind::nothing : Kind::unknown, .error = error_of(end)};
}

// A result that cannot be kept is none, whatever was done for it.
AttemptEnd AttemptRunner::checked(Done done) {
  HandlerResult result = in_canonical_form(std::move(done), parser_);
  if (auto *kept = std::get_if<Done>(&result)) return {.kind = Kind::done, .done = std::move(*kept)};
  return {.kind = Kind::unknown, .error = std::move(std::get<Failed>(result).detail)};
}

AttemptEnd AttemptRunner::end_of(ReconcileResult result) {
  if (auto *done = std::get_if<Done>(&result)) return checked(std::move(*done));
  if (auto *unknown = std::get_if<EffectUnknown>(&result))
    return {.kind = Kind::unknown, .error = std::move(unknown->error)};
  return {.kind = Kind::nothing};
}

} // namespace onced::runner
