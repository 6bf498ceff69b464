#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exit_codes.hpp"
#include "output.hpp"
#include "query.hpp"

namespace onced::tools {

struct DeadLettersListOptions {
  QueryTarget target;
  std::string reason;                 // an outcome's name; empty: every reason
  std::string type;                   // of the job; empty: every type
  std::optional<std::uint64_t> limit; // rows printed at most; none: all
};

// Prints the dead letters in the order of their ids, a row a line, without their bytes.
[[nodiscard]] ExitCode run_dead_letters_list(const DeadLettersListOptions &options, Output &output);

struct DeadLettersShowOptions {
  QueryTarget target;
  std::string id; // 32 hexadecimal characters
};

// Prints one dead letter with everything that is kept of it; exit 1 where there is none.
[[nodiscard]] ExitCode run_dead_letters_show(const DeadLettersShowOptions &options, Output &output);

} // namespace onced::tools
