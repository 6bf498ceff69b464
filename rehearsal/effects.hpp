#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onced/digest.hpp"
#include "rehearsal/time.hpp"

namespace onced::rehearsal {

// An effect outside, as the provider has written it down.
struct Effect {
  Micros at = 0;
  std::string key;          // the idempotency key by which it was called
  std::string token;        // the fencing token of who called; empty: none was given
  std::string operation_id; // empty: the key is that of no job that was sent
};

// The key of a job, a line of JSON; nothing: it is no job.
[[nodiscard]] std::optional<Key> key_of(const std::string &job);

// The key by which the handler of a job, a line of JSON, calls a provider; empty: it is no job.
[[nodiscard]] std::string idempotency_key_of(const std::string &job);

// A job for the first worker of a chain: a seed with a type of its own. Its handler sends the seed's payload on.
inline constexpr std::string_view order_type = "order";
[[nodiscard]] std::string order_of(const std::string &seed);
// The key by which the next worker's handler calls for the message of such a job; empty: it is no job.
[[nodiscard]] std::string relayed_key_of(const std::string &order, const std::string &type);

// Of the lines of a provider's file, in their order; `jobs` are lines of JSON, `type` that of their messages. A line
// that a kill cut short is left out. No file is none.
[[nodiscard]] std::vector<Effect> effects_in(const std::filesystem::path &file, const std::vector<std::string> &jobs,
                                             const std::string &type);

} // namespace onced::rehearsal
