#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "onced/bytes.hpp"
#include "onced/error.hpp"
#include "onced/job.hpp"

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

// The handlers of a worker, by job type. Filled before the worker starts; then only read, from any thread.
class Handlers {
public:
  // Errors: `usage` when the type is taken, or not 1 to limits::type_bytes_max bytes long.
  [[nodiscard]] Result<void> add_inline(std::string type, InlineHandler handler);

  // Runs the job's handler. An unknown type is `Invalid`. An exception that leaves the handler, and a result that is
  // too large or has no canonical form, are `Failed`. The result is in canonical form.
  [[nodiscard]] HandlerResult run(const Job &job, JobParser &parser) const;

private:
  std::map<std::string, InlineHandler, std::less<>> inline_;
};

// `sum`: adds `numbers`. Its exact rules are in docs/protocol.md.
[[nodiscard]] HandlerResult sum_handler(const HandlerCall &call);

// The handlers that come with onced: `sum`.
[[nodiscard]] Handlers built_in_handlers();

} // namespace onced
