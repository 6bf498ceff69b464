#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "console_log.hpp"
#include "exit_codes.hpp"
#include "onced/sender.hpp"
#include "output.hpp"

namespace onced::tools {

struct SendOptions {
  SenderOptions sender;
  // "-": standard input; empty: that too, but with an outbox only where it is no terminal.
  std::string file;
  bool resume = false;                        // reads no input: only goes on with what the outbox holds
  std::chrono::milliseconds deadline{60'000}; // from the start of the command
  std::uint32_t copies = 1;                   // deliveries of each job, each with a sequence of its own
  bool raw = false;                           // the file's bytes are one job, not looked into
  bool raw_message = false;                   // the file's bytes are a whole message; there is no reply
  std::optional<std::uint64_t> seed;          // of the lab's knobs; none: a random one
  bool stats = false;                         // print a last line of figures; the lab's knobs print it too
  LogFormat log_format = LogFormat::text;
  std::filesystem::path events; // each step of each delivery is written here; empty: none
};

// Sends jobs, and what an outbox holds from before, and prints one line for each delivery as it settles. One that does
// not is printed as unsettled, or stays in the outbox.
[[nodiscard]] ExitCode run_send(const SendOptions &options, Output &output);

} // namespace onced::tools
