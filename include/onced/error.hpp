#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace onced {

// What kind of thing went wrong. Each code is one decision for the caller; the command maps it to an exit code.
enum class ErrorCode {
  usage,                // the caller asked for something that cannot be
  configuration,        // a configuration file is malformed or names an unknown setting
  not_found,            // a file, directory or row that must exist does not
  locked,               // another process holds the data directory
  endpoint,             // an endpoint cannot be bound or connected
  newer_format,         // the database was written by a newer program
  corrupt,              // stored bytes fail their checks
  loss_suspected,       // acknowledged rows may be missing from the database
  store_unavailable,    // the store reported an I/O error; what was being written is unknown
  timed_out,            // the deadline passed
  unsupported_protocol, // the other side speaks no protocol version that we speak
  out_of_resources,     // the system gives this process no more threads
  internal,             // a broken invariant: a defect in onced
};

// A failure that the caller may act on. Expected results of a job are an `Outcome` (outcome.hpp), never an Error.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string concerns; // the file, endpoint, id or setting it is about
  std::string cause;    // what happened to it
  std::string remedy;   // what to do; empty only where nothing can be done
};

// "CONCERNS: CAUSE; REMEDY", for people.
[[nodiscard]] std::string describe(const Error &error);

// The code's name as it is written here, for logs and JSON.
[[nodiscard]] std::string_view name_of(ErrorCode code);

template <class T> using Result = tl::expected<T, Error>;

} // namespace onced
