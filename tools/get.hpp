#pragma once

#include <string>

#include "exit_codes.hpp"
#include "output.hpp"
#include "query.hpp"

namespace onced::tools {

// By what a key is asked for.
struct JobAddress {
  std::string id;             // an operation id, or an effect key
  std::string type = "sum";   // of the operation id
  bool by_effect_key = false; // `id` is an effect key
};

// The fields of a query for this key. Errors: `usage`: no job can have this id or type.
[[nodiscard]] Result<Json> key_of(const JobAddress &address);

struct GetOptions {
  QueryTarget target;
  JobAddress job;
};

// Prints the row of one key; exit 1 where there is none, and where it has no result (yet).
[[nodiscard]] ExitCode run_get(const GetOptions &options, Output &output);

} // namespace onced::tools
