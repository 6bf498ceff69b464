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

// What an inline handler is given of a job. The views are valid during the call only.
struct HandlerCall {
  std::string_view operation_id; // 1 to limits::operation_id_bytes_max bytes of UTF-8
  std::string_view type;         // 1 to limits::type_bytes_max bytes of UTF-8
  std::string_view traceparent;  // W3C trace context; empty: none
  BytesView payload;             // a MessagePack map in canonical form, without the fields that belong to onced
};

// A job that a result sends on, to the worker of the name `to` (WorkerOptions::relays). If no worker of that name is
// configured, the message stays in the relay until one is.
struct RelayMessage {
  std::string to; // 1 to limits::relay_name_bytes_max bytes of UTF-8
  Bytes job;      // a MessagePack map without `operation_id`, which onced derives from the key of the parent
};

// The job is done. `result` is one MessagePack value of at most limits::result_bytes_max. One transaction stores it, in
// canonical form, together with the messages: at most limits::relay_messages_max messages of
// limits::relay_message_bytes_max bytes together.
struct Done {
  Bytes result;
  std::vector<RelayMessage> messages = {};
};
// The payload is not of the type's schema. The outcome is `invalid`. `detail` says why, for people; it is cut after
// limits::detail_bytes_max.
struct Invalid {
  std::string detail;
};
// The handler refuses the job for good. The outcome is `failed`. `detail` is as in `Invalid`.
struct Failed {
  std::string detail;
};
using HandlerResult = std::variant<Done, Invalid, Failed>;

// An inline handler must be pure and fast. It runs in the batch, so all jobs of the batch wait for it. Several threads
// run it at the same time. It may run again for the same job: after a crash, or for a copy of the job in another batch.
// Only one of its results is stored. An exception makes the job `failed`.
using InlineHandler = std::function<HandlerResult(const HandlerCall &)>;

// What a queued handler is given, beside the job. The views are valid during the call only.
struct QueuedCall : HandlerCall {
  std::string_view idempotency_key; // 64 hexadecimal digits: one for each key, the same at every receive
  std::string_view fencing_token;   // 32 hexadecimal digits: greater, compared as text, in every later lease of any job
  std::uint32_t attempt = 1;        // the receive count, this receive included
  std::stop_token stop;             // requested when the worker stops, the deadline has passed, or the lease is lost
};

// The job is not done, and nothing was done outside. The job goes back to the queue, or is at its end if its receives
// are used up. `error` is kept with the job, at most limits::queue_error_bytes_max of it.
struct TryAgain {
  std::string error;
};
// Nobody knows whether the job is done; its effect outside may have taken place. For an external type the policy
// decides what follows. For another type it means the same as TryAgain. An exception that leaves a handler means
// EffectUnknown.
struct EffectUnknown {
  std::string error;
};
// The answer of `reconcile`: the provider says that the effect did not take place, and will not.
struct EffectAbsent {};

// A queued handler may block: it runs on a thread of its own. Up to QueuedType::concurrency threads run it at the same
// time. While it runs, no other thread has its job. Once it has run longer than its deadline, nobody extends its lease;
// after the visibility timeout the job may be handed over again, and the late answer changes nothing.
using QueuedResult = std::variant<Done, Invalid, Failed, TryAgain, EffectUnknown>;
using QueuedFunction = std::function<QueuedResult(const QueuedCall &)>;
// Asks the provider what became of an earlier call. `Done` carries the result of the effect that took place. It runs on
// the thread of the handler, and may block.
using ReconcileResult = std::variant<Done, EffectAbsent, EffectUnknown>;
using ReconcileFunction = std::function<ReconcileResult(const QueuedCall &)>;

// A handler that is a program. docs/handlers.md says what it is given and how it answers. No shell reads the arguments.
struct HandlerCommand {
  std::vector<std::string> arguments;             // the program, then its arguments; at least the program
  std::map<std::string, std::string> environment; // all its variables, beside those about its job
};

// What follows if nobody knows whether an external handler had its effect.
enum class EffectPolicy : std::uint8_t {
  hold,  // the job is held until its owner, a person, decides
  retry, // the handler runs again; the provider must do nothing twice under one idempotency key
  query, // `reconcile` asks the provider before the handler runs again
};

// A type whose jobs are queued. The worker takes each job into custody, on stable storage, and hands it over later,
// outside the batch. All times are at most limits::handler_time_max.
struct QueuedType {
  std::string type;                                       // 1 to limits::type_bytes_max bytes
  std::variant<QueuedFunction, HandlerCommand> handler{}; // an empty function: its jobs stay in the queue

  bool external = false; // true: it touches something outside, so a crash during a call leaves its effect unknown
  EffectPolicy policy = EffectPolicy::hold;                    // external only, as `reconcile` and `owner` are
  std::variant<ReconcileFunction, HandlerCommand> reconcile{}; // policy `query` only
  std::string owner = {}; // who decides about an unknown effect: at most limits::audit_by_bytes_max bytes of UTF-8

  std::uint32_t max_receive_count = limits::max_receive_count; // receives of one job, at least 1
  unsigned concurrency = 1;                             // jobs handled at once, 1 to limits::handler_concurrency_max
  std::chrono::milliseconds visibility_timeout{30'000}; // of a lease, extended while the handler runs; at least 10 ms
  std::chrono::milliseconds deadline{60'000};           // of one run, at least 1 ms
  std::chrono::milliseconds grace{10'000};              // of a command, between SIGTERM and SIGKILL
  std::chrono::milliseconds backoff{1'000};      // before the second receive, at least 1 ms; doubles, with jitter
  std::chrono::milliseconds backoff_max{60'000}; // not less than `backoff`
  bool messages = false;                         // of a command: true if its output holds messages beside the result
};

// The handlers of a worker, by job type. One thread fills it before the worker starts. The worker owns its copy and
// only reads it, from any thread. It owns the functions, and so must everything that they capture outlive the worker.
class Handlers {
public:
  // Adds an inline type. Errors: `usage` if the type has a handler already, or has not 1 to limits::type_bytes_max
  // bytes. After an error nothing has changed.
  [[nodiscard]] Result<void> add_inline(std::string type, InlineHandler handler);

  // Adds a queued type. Errors: `usage` for the reasons of `add_inline`, and if a value is out of its range. After an
  // error nothing has changed.
  [[nodiscard]] Result<void> add_queued(QueuedType type);

  // Returns the queued type of that name, or null. It lives as long as this object.
  [[nodiscard]] const QueuedType *queued(std::string_view type) const;
  // All queued types, by name.
  [[nodiscard]] const std::map<std::string, QueuedType, std::less<>> &queued_types() const { return queued_; }

  // True if the type has an inline handler.
  [[nodiscard]] bool has_inline(std::string_view type) const { return inline_.find(type) != inline_.end(); }

  // Runs the inline handler of the job, on the calling thread, and returns its result in canonical form. A type without
  // an inline handler gives `Invalid`. An exception of the handler, a result that is too large or has no canonical
  // form, and messages that cannot be sent on give `Failed`. Any thread, each with a parser of its own.
  [[nodiscard]] HandlerResult run(const Job &job, JobParser &parser) const;

private:
  [[nodiscard]] Result<void> check_type(std::string_view type) const;

  std::map<std::string, InlineHandler, std::less<>> inline_;
  std::map<std::string, QueuedType, std::less<>> queued_;
};

// Returns `done` with its result in canonical form, or `Failed` for the reasons of `Handlers::run`. Messages stay as
// they are. One thread at a time may use a parser.
[[nodiscard]] HandlerResult in_canonical_form(Done done, JobParser &parser);

// The handler of `sum`: adds `numbers` exactly. docs/protocol.md gives its rules. Any thread.
[[nodiscard]] HandlerResult sum_handler(const HandlerCall &call);

// Returns the handlers that come with onced: `sum`.
[[nodiscard]] Handlers built_in_handlers();

} // namespace onced
