#pragma once

#include <string>

#include "exit_codes.hpp"
#include "output.hpp"
#include "query.hpp"

namespace onced::tools {

struct GetOptions {
  QueryTarget target;
  std::string id;             // an operation id, or an effect key
  std::string type = "sum";   // of the operation id
  bool by_effect_key = false; // `id` is an effect key
};

// Prints the row of one key; exit 1 where there is none.
[[nodiscard]] ExitCode run_get(const GetOptions &options, Output &output);

} // namespace onced::tools
