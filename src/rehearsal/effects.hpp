#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rehearsal/time.hpp"

namespace onced::rehearsal {

// An effect outside, as the provider has written it down.
struct Effect {
  Micros at = 0;
  std::string key;          // the idempotency key by which it was called
  std::string token;        // the fencing token of who called; empty: none was given
  std::string operation_id; // empty: the key is that of no job that was sent
};

// The key by which the handler of a job, a line of JSON, calls a provider; empty: it is no job.
[[nodiscard]] std::string idempotency_key_of(const std::string &job);

// Of the lines of a provider's file, in their order; `jobs` are lines of JSON. A line that a kill cut short is left
// out. No file is none.
[[nodiscard]] std::vector<Effect> effects_in(const std::filesystem::path &file, const std::vector<std::string> &jobs);

} // namespace onced::rehearsal
