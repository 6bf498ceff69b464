#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "console_log.hpp"
#include "exit_codes.hpp"
#include "onced/sender.hpp"
#include "output.hpp"

namespace onced::tools {

struct SendOptions {
  SenderOptions sender;
  std::string file = "-";                     // "-": standard input
  std::chrono::milliseconds deadline{60'000}; // from the start of the command
  std::uint32_t copies = 1;                   // deliveries of each job, each with a sequence of its own
  bool raw = false;                           // the file's bytes are one job, not looked into
  bool raw_message = false;                   // the file's bytes are a whole message; there is no reply
  LogFormat log_format = LogFormat::text;
};

// Sends jobs, and prints one line for each delivery as it settles; one that never does is printed as unsettled.
[[nodiscard]] ExitCode run_send(const SendOptions &options, Output &output);

} // namespace onced::tools
