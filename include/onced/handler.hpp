#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/error.hpp"
#include "onced/job.hpp"
#include "onced/limits.hpp"

namespace onced {

// What a handler may know of a job. Views are valid during the call.
struct HandlerCall {
  std::string_view operation_id;
  std::string_view type;
  std::string_view traceparent; // empty: none
  BytesView payload;            // a canonical MessagePack map
};

// A job that a result sends on, to a worker that is configured under the name `to` (WorkerOptions::relays).
struct RelayMessage {
  std::string to; // 1 to limits::relay_name_bytes_max bytes of UTF-8
  Bytes job;      // a MessagePack map without `operation_id`, which is derived from the key of the job that sends it on
};

// The result: one MessagePack value of at most limits::result_bytes_max. It is stored in canonical form, and the
// messages with it, in the same transaction.
struct Done {
  Bytes result;
  std::vector<RelayMessage> messages = {}; // at most limits::relay_messages_max, of relay_message_bytes_max together
};
// The payload is not of the type's schema: outcome `invalid`.
struct Invalid {
  std::string detail;
};
// The handler refuses the job for good: outcome `failed`.
struct Failed {
  std::string detail;
};
using HandlerResult = std::variant<Done, Invalid, Failed>;

// An inline handler is pure and fast: it runs in the batch, from several threads at once, and may run again for the
// same job (after a crash, or beside a copy of the job in another batch); only one of its results is ever stored.
using InlineHandler = std::function<HandlerResult(const HandlerCall &)>;

// What the handler of a queued job may know beside the job. Views are valid during the call.
struct QueuedCall : HandlerCall {
  std::string_view idempotency_key; // 64 hexadecimal digits: one for each key, the same at every attempt
  std::string_view fencing_token;   // 32 hexadecimal digits: greater, as a text, at every later attempt at any job
  std::uint32_t attempt = 1;        // how often the job was handed over, this time included
  std::stop_token stop;             // asked to stop: the worker stops, the deadline has passed, or the lease is lost
};

// Not done, and nothing was done outside: the job goes back to the queue.
struct TryAgain {
  std::string error;
};
// Not known to be done, and it may have had its effect outside: of an external handler the policy decides what follows;
// of another, as TryAgain. An exception that leaves a handler is this.
struct EffectUnknown {
  std::string error;
};
// It had no effect outside, as the provider says.
struct EffectAbsent {};

// The handler of a queued job may block: it runs on a thread of its own. While it runs its job is nobody else's; once
// it has lasted longer than its deadline, that ends with the visibility timeout.
using QueuedResult = std::variant<Done, Invalid, Failed, TryAgain, EffectUnknown>;
using QueuedFunction = std::function<QueuedResult(const QueuedCall &)>;
// Finds out from the provider what became of an earlier call. `Done` has the result of the effect that took place.
using ReconcileResult = std::variant<Done, EffectAbsent, EffectUnknown>;
using ReconcileFunction = std::function<ReconcileResult(const QueuedCall &)>;

// A handler that is a program (docs/handlers.md says what it is given and how it answers). No shell reads it.
struct HandlerCommand {
  std::vector<std::string> arguments;             // the program and its arguments
  std::map<std::string, std::string> environment; // all that it gets, beside what concerns its job
};

// What follows where nobody knows whether an external handler had its effect.
enum class EffectPolicy : std::uint8_t {
  hold,  // a person decides: the owner
  retry, // it is called again: the provider does nothing twice under one idempotency key
  query, // the provider is asked, by `reconcile`
};

// A type whose jobs are queued: each is taken into custody on stable storage, and handled later, outside the batch.
struct QueuedType {
  std::string type;                                       // 1 to limits::type_bytes_max bytes
  std::variant<QueuedFunction, HandlerCommand> handler{}; // an empty function: its jobs wait

  bool external = false; // it touches something outside: a crash during a call leaves its effect unknown
  EffectPolicy policy = EffectPolicy::hold;                    // external only, as the next two
  std::variant<ReconcileFunction, HandlerCommand> reconcile{}; // `query` only
  std::string owner = {}; // who decides about an unknown effect: at most limits::audit_by_bytes_max bytes of UTF-8

  std::uint32_t max_receive_count = limits::max_receive_count; // at least 1
  unsigned concurrency = 1;                                    // at once; 1 to limits::handler_concurrency_max
  std::chrono::milliseconds visibility_timeout{30'000};
  std::chrono::milliseconds deadline{60'000}; // of one attempt
  std::chrono::milliseconds grace{10'000};    // of a command, between being asked to stop and being made to
  std::chrono::milliseconds backoff{1'000};   // before the second attempt; doubles, with jitter, with each
  std::chrono::milliseconds backoff_max{60'000};
  bool messages = false; // of a command: its output is the result together with messages
};

// The handlers of a worker, by job type. Filled before the worker starts; then only read, from any thread.
class Handlers {
public:
  // Errors: `usage` when the type is taken, or not 1 to limits::type_bytes_max bytes long.
  [[nodiscard]] Result<void> add_inline(std::string type, InlineHandler handler);

  // Errors: `usage`, as above, and where a value is out of its range.
  [[nodiscard]] Result<void> add_queued(QueuedType type);

  // The type, where it is a queued one; else null. Lives as long as this.
  [[nodiscard]] const QueuedType *queued(std::string_view type) const;
  [[nodiscard]] const std::map<std::string, QueuedType, std::less<>> &queued_types() const { return queued_; }

  [[nodiscard]] bool has_inline(std::string_view type) const { return inline_.find(type) != inline_.end(); }

  // Runs the job's inline handler. A type that has none is `Invalid`. An exception that leaves the handler, a result
  // that is too large or has no canonical form, and messages that cannot be sent on, are `Failed`. The result is in
  // canonical form.
  [[nodiscard]] HandlerResult run(const Job &job, JobParser &parser) const;

private:
  [[nodiscard]] Result<void> check_type(std::string_view type) const;

  std::map<std::string, InlineHandler, std::less<>> inline_;
  std::map<std::string, QueuedType, std::less<>> queued_;
};

// What `run` makes of a result: in canonical form, its messages as they are, or `Failed`.
[[nodiscard]] HandlerResult in_canonical_form(Done done, JobParser &parser);

// `sum`: adds `numbers`. Its exact rules are in docs/protocol.md.
[[nodiscard]] HandlerResult sum_handler(const HandlerCall &call);

// The handlers that come with onced: `sum`.
[[nodiscard]] Handlers built_in_handlers();

} // namespace onced
