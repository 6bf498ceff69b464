#pragma once

#include <array>
#include <string_view>

#include "onced/error.hpp"

namespace onced::tools {

// What the command exits with; from 64 on, the numbers of sysexits(3). docs/operations.md repeats the table below, and
// a test holds it to this one. SIGQUIT or a second SIGINT exits at once with 128 and the signal's number.
enum class ExitCode : int {
  ok = 0,
  no = 1,
  usage = 64,
  data = 65,
  no_input = 66,
  unavailable = 69,
  internal = 70,
  os_error = 71,
  cannot_create = 73,
  io_error = 74,
  try_again = 75,
  configuration = 78,
};

struct ExitCodeTraits {
  ExitCode code;
  std::string_view name;
  std::string_view meaning;
};

inline constexpr std::array<ExitCodeTraits, 12> exit_code_table{{
    {ExitCode::ok, "ok", "done; for send: every job is stored or duplicate"},
    {ExitCode::no, "no", "a job has another final outcome, or what was asked for is absent"},
    {ExitCode::usage, "usage", "wrong usage of the command"},
    {ExitCode::data, "data", "stored data that cannot be trusted or read: damaged, rows missing, or of a newer format"},
    {ExitCode::no_input, "no-input", "a file, directory or database that must exist does not"},
    {ExitCode::unavailable, "unavailable",
     "an endpoint cannot be used, or the worker speaks no protocol version that we speak"},
    {ExitCode::internal, "internal", "a defect in onced"},
    {ExitCode::os_error, "os-error",
     "the system does not give this process the threads, memory, open files or /proc that it needs"},
    {ExitCode::cannot_create, "cannot-create", "another process holds the data directory"},
    {ExitCode::io_error, "io-error", "an I/O error of the store, of the input or of standard output"},
    {ExitCode::try_again, "try-again", "the deadline or a signal came before everything was settled; try again"},
    {ExitCode::configuration, "configuration", "the configuration file is malformed or names an unknown setting"},
}};

[[nodiscard]] constexpr ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
  case ErrorCode::usage:
    return ExitCode::usage;
  case ErrorCode::configuration:
    return ExitCode::configuration;
  case ErrorCode::not_found:
    return ExitCode::no_input;
  case ErrorCode::locked:
    return ExitCode::cannot_create;
  case ErrorCode::endpoint:
  case ErrorCode::unsupported_protocol:
    return ExitCode::unavailable;
  case ErrorCode::newer_format:
  case ErrorCode::corrupt:
  case ErrorCode::loss_suspected:
    return ExitCode::data;
  case ErrorCode::store_unavailable:
    return ExitCode::io_error;
  case ErrorCode::timed_out:
    return ExitCode::try_again;
  case ErrorCode::out_of_resources:
    return ExitCode::os_error;
  case ErrorCode::internal:
    break;
  }
  return ExitCode::internal;
}

// Says on stderr what went wrong and what to do, and returns the exit code for it.
ExitCode report(const Error &error);

} // namespace onced::tools
