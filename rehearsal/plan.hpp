#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onced/error.hpp"

namespace onced::rehearsal {

// What a run must not lose or double, and who answers for it.
struct SideEffect {
  std::string name;
  std::string recorded_in;
  std::string owner;
  std::string duplicate_accepted_by;
  std::string reconciliation_owner;
};

// The jobs, each a line of JSON as for `onced send`, in the order of the file.
struct Seeds {
  std::string file; // as the plan names it
  std::string type;
  std::string schema;
  std::vector<std::string> conflicting;   // ids that are there twice with different payloads, as the plan says
  std::string text;                       // the file's content
  std::vector<std::string> lines;         // without empty ones
  std::vector<std::string> operation_ids; // of the lines
};

// How the worker is started.
struct WorkerPlan {
  unsigned threads = 2;
  std::string durability = "fsync";
  std::string retry_policy;
  std::chrono::milliseconds visibility_timeout{1000};
  // Someone else's worker; empty: onced serve.
  std::vector<std::string> command;
  std::vector<std::string> count;
  std::string kill_when; // the beginning of a line that marks the step at which it is killed
};

// The handler of queued jobs, and the provider that it calls. Words and values may name {provider}, its URL.
struct HandlerPlan {
  std::vector<std::string> command; // empty: the plan has none
  std::vector<std::string> reconcile;
  std::map<std::string, std::string> environment; // of both
  std::vector<std::string> provider; // takes the options of tools/fake-provider that docs/rehearsal.md names
};

// Names of counts, in the order in which they are shown. `late` are settlements that were refused as they came after
// the end of their lease; `settled` is stored or duplicate, where it is chance which of both a sender is told first.
inline constexpr std::array<std::string_view, 10> count_names{
    "effects", "dead_letters", "late", "stored", "duplicate", "settled", "conflict", "invalid", "failed", "expired"};
// Those of them that are outcomes.
inline constexpr std::span<const std::string_view> outcome_count_names = std::span(count_names).subspan(3);
using ScenarioCounts = std::map<std::string, std::uint64_t, std::less<>>;

struct ScenarioPlan {
  std::string name;
  unsigned copies = 2;
  ScenarioCounts expected; // every name of count_names, or `effects_min` alone
};

struct Plan {
  std::string name;
  std::string review_by; // YYYY-MM-DD
  SideEffect side_effect;
  Seeds seeds;
  WorkerPlan worker;
  HandlerPlan handler;
  std::vector<ScenarioPlan> scenarios;
  std::string file; // its name without folders
  std::string text; // the file's content
};

// The commands that a plan runs besides onced itself, with what they are: "worker", "count", "handler", "reconcile",
// "provider".
[[nodiscard]] std::vector<std::pair<std::string, std::vector<std::string>>> commands_of(const Plan &plan);

// The scenarios of a plan, or `only` that one; `only` empty: all.
[[nodiscard]] std::vector<ScenarioPlan> chosen(const Plan &plan, const std::string &only);

// The content of a plan, without its seeds. `known` says which scenarios there are. Errors: `configuration`, with file,
// line and key: no TOML, an unknown table or key, a wrong type, a missing value, a scenario that is unknown, there
// twice or without expected counts.
[[nodiscard]] Result<Plan> parse_plan(std::string_view toml, const std::string &file,
                                      const std::vector<std::string> &known);

// The jobs of a seed file. Errors: `configuration`, with file and line: a line that is no job, no jobs at all, an id
// that is there twice with different payloads unless `conflicting` names it, one that is named and is not there twice.
[[nodiscard]] Result<void> parse_seeds(std::string_view text, Seeds &seeds);

// Both, from the files. Errors: as above, and `not_found`.
[[nodiscard]] Result<Plan> read_plan(const std::filesystem::path &file, const std::vector<std::string> &known);

} // namespace onced::rehearsal
