#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace onced {

// What kind of thing went wrong. Each code is one decision for the caller. The command maps it to an exit code
// (docs/operations.md, "Exit codes").
enum class ErrorCode {
  usage,                // the caller asked for something that cannot be; the same call fails again
  configuration,        // a configuration file is malformed or names an unknown setting
  not_found,            // a file, directory or row that must exist does not
  locked,               // another process holds the data directory
  endpoint,             // an endpoint cannot be bound or connected
  newer_format,         // a newer program wrote the database
  corrupt,              // stored bytes fail their checks
  loss_suspected,       // acknowledged rows may be missing from the database
  store_unavailable,    // the store met an I/O error; nobody knows whether the write in hand is on disk
  timed_out,            // the deadline passed; the same call may succeed later
  unsupported_protocol, // the other side speaks no protocol version that this side speaks
  out_of_resources,     // the system gives this process no more threads
  internal,             // a broken invariant: a defect in onced
};

// A failure that the caller may act on. An expected result of a job is an `Outcome` (outcome.hpp), never an Error.
// The texts are for people, and their wording may change. They may quote bytes of the wire or the disk, so escape them
// before a terminal shows them.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string concerns; // the file, endpoint, id or setting that the error is about
  std::string cause;    // what happened to it
  std::string remedy;   // what to do; empty only if nothing can be done
};

// Returns "CONCERNS: CAUSE; REMEDY", for people; without a remedy "CONCERNS: CAUSE". Any thread.
[[nodiscard]] std::string describe(const Error &error);

// Returns the name of the code as it is written here, for logs and JSON. The name is a literal and never changes.
[[nodiscard]] std::string_view name_of(ErrorCode code);

// The value, or why there is none. onced throws only for what a caller cannot handle, such as no memory.
template <class T> using Result = tl::expected<T, Error>;

} // namespace onced
