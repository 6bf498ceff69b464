#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>

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

// The result: one MessagePack value of at most limits::result_bytes_max. It is stored in canonical form.
struct Done {
  Bytes result;
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

// A type whose jobs are queued: each is taken into custody on stable storage, and handled later, outside the batch. How
// is not said here.
struct QueuedType {
  std::string type;       // 1 to limits::type_bytes_max bytes
  bool external = false;  // it touches something outside: a crash during a call leaves its effect unknown
  std::string owner = {}; // who decides about an unknown effect: at most limits::audit_by_bytes_max bytes of UTF-8
  std::uint32_t max_receive_count = limits::max_receive_count; // at least 1
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

  // Runs the job's inline handler. A type that has none is `Invalid`. An exception that leaves the handler, and a
  // result that is too large or has no canonical form, are `Failed`. The result is in canonical form.
  [[nodiscard]] HandlerResult run(const Job &job, JobParser &parser) const;

private:
  [[nodiscard]] Result<void> check_type(std::string_view type) const;

  std::map<std::string, InlineHandler, std::less<>> inline_;
  std::map<std::string, QueuedType, std::less<>> queued_;
};

// What `run` makes of a result: in canonical form, or `Failed`.
[[nodiscard]] HandlerResult in_canonical_form(Done done, JobParser &parser);

// `sum`: adds `numbers`. Its exact rules are in docs/protocol.md.
[[nodiscard]] HandlerResult sum_handler(const HandlerCall &call);

// The handlers that come with onced: `sum`.
[[nodiscard]] Handlers built_in_handlers();

} // namespace onced
