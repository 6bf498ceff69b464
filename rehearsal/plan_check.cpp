#include "rehearsal/plan_check.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

#include <unistd.h>

#include "rehearsal/effects.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/limits.hpp"
#include "rehearsal/scenarios.hpp"

namespace onced::rehearsal {
namespace {

using CommandWords = std::vector<std::string>;

// What onced handles without a handler of the plan's.
constexpr std::string_view inline_type = "sum";

// Ends the checks at the first thing that is wrong; never leaves this file.
struct Refused {
  Error error;
};

// What the seeds amount to.
struct SeedCounts {
  std::size_t lines = 0;
  std::size_t keys = 0; // different ones, of lines that are jobs
  std::size_t ids = 0;
  std::vector<std::string> types; // of the lines
};

SeedCounts seed_counts_of(const Seeds &seeds) {
  std::set<std::string> keys;
  SeedCounts counts;
  for (const std::string &line : seeds.lines) {
    if (const auto key = key_of(line)) keys.emplace(key->bytes);
    const std::string type = text_in(parse_json(line), "type");
    counts.types.push_back(type.empty() ? std::string(inline_type) : type);
  }
  counts.lines = seeds.lines.size();
  counts.keys = keys.size();
  counts.ids = std::set<std::string>(seeds.operation_ids.begin(), seeds.operation_ids.end()).size();
  return counts;
}

// Whether it could be started; words with {a place} are known later.
bool is_program(const std::string &word) {
  const auto can_run = [](const std::filesystem::path &path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
  };
  if (word.find('{') != std::string::npos) return true;
  if (word.find('/') != std::string::npos) return can_run(word);
  const char *path = std::getenv("PATH"); // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (can_run(std::filesystem::path(folder.empty() ? "." : folder) / word)) return true;
  }
  return false;
}

bool holds_control(const std::string &text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; });
}

// One scenario of a plan.
class Check {
public:
  Check(const Plan &plan, const SeedCounts &seeds, const ScenarioPlan &planned)
      : plan_(plan), seeds_(seeds), planned_(planned), scenario_(*find_scenario(planned.name)),
        is_foreign_(!plan.worker.command.empty()) {}

  void run() const {
    const bool is_control = !scenario_.guard.empty();
    if (is_control != planned_.expected.contains("effects_min")) {
      refuse(is_control ? "a control without effects_min" : "effects_min, and this is no control",
             is_control ? "write expected = { effects_min = N }" : "write effects");
    }
    if (is_control) return check_control();
    if (is_foreign_ && !scenario_.foreign_obstacle.empty()) return; // it is skipped, and says why
    check_jobs();
    check_handlers();
    check_kill();
    check_outcomes();
    check_effects();
  }

private:
  [[noreturn]] void refuse(std::string cause, std::string remedy) const {
    throw Refused{{ErrorCode::configuration, plan_.file + ": " + planned_.name, std::move(cause), std::move(remedy)}};
  }

  [[nodiscard]] std::uint64_t expected(std::string_view name) const { return planned_.expected.find(name)->second; }

  // Of as many jobs there are at most twice as many effects, as they are sent twice.
  void check_control() const {
    const std::uint64_t wanted = expected("effects_min");
    if (wanted > seeds_.ids && wanted <= 2 * seeds_.lines) return;
    refuse("effects_min = " + std::to_string(wanted) + " cannot show a double effect of " + std::to_string(seeds_.ids) +
               " jobs",
           "write " + std::to_string(seeds_.ids + 1));
  }

  void check_jobs() const {
    const std::size_t jobs = seeds_.lines * planned_.copies;
    if (seeds_.keys == 0) refuse("none of the seeds is a job", "correct " + plan_.seeds.file);
    if (jobs > scenario_jobs_max) {
      refuse("it would send " + std::to_string(jobs) + " jobs; at most " + std::to_string(scenario_jobs_max) +
                 " are played",
             "give it fewer seeds or copies");
    }
    if (scenario_.name == "store unavailable" && jobs < store_unavailable_jobs_min) {
      refuse(std::to_string(jobs) + " jobs may still find room on the full disk",
             "raise copies, so that copies times seeds is " + std::to_string(store_unavailable_jobs_min) + " or more");
    }
  }

  void check_handlers() const {
    if (is_foreign_ || (scenario_.makes_types && !scenario_.needs_handler)) return;
    if (scenario_.needs_handler && plan_.handler.command.empty())
      refuse("its jobs are handled, and the plan has no [handler]", "write one");
    if (scenario_.needs_handler && plan_.seeds.type == inline_type) {
      refuse("its jobs go to the plan's handler, and onced handles the type \"sum\" itself",
             "give the seeds another type");
    }
    if (scenario_.makes_types) return;
    const std::string handled = scenario_.needs_handler ? plan_.seeds.type : std::string(inline_type);
    const auto other = std::find_if(seeds_.types.begin(), seeds_.types.end(),
                                    [&](const std::string &type) { return type != handled; });
    const auto others =
        seeds_.types.size() - static_cast<std::size_t>(std::count(seeds_.types.begin(), seeds_.types.end(), handled));
    if (others <= expected("invalid")) return; // which the plan means to be refused
    refuse("nobody handles the type " + Json(*other).dump() + " in this scenario, and its jobs would be invalid",
           scenario_.needs_handler ? "give every seed the type of [seeds]"
                                   : "take a scenario whose jobs go to [handler], or seeds of the type \"sum\"");
  }

  void check_kill() const {
    const std::size_t commits = scenario_.killed_at(seeds_.lines);
    if (commits == 0) return;
    if (is_foreign_ && plan_.worker.kill_when.empty()) {
      refuse("its worker is killed, and the plan does not say when", "write kill_when in [worker]");
    }
    if (commits > seeds_.keys) {
      refuse("its worker is killed at commit " + std::to_string(commits) + ", and the seeds have " +
                 std::to_string(seeds_.keys) + " different keys",
             "give it seeds with more keys");
    }
  }

  void check_outcomes() const {
    for (const std::string_view name : {"stored", "duplicate", "settled"}) {
      if (expected(name) == 0 || (name == "settled") == scenario_.may_be_told_either) continue;
      refuse("the outcome \"" + std::string(name) + "\" is never counted in this scenario",
             scenario_.may_be_told_either ? "write settled, for stored and duplicate" : "write stored and duplicate");
    }
    if (expected("late") > 0 && !scenario_.needs_handler)
      refuse("nothing of it can be late, as no handler is called", "leave late out");
    if (scenario_.told == nullptr) return;
    std::uint64_t named = 0;
    for (const std::string_view name : outcome_count_names)
      named += expected(name);
    const std::uint64_t told = scenario_.told(seeds_.lines, planned_.copies);
    if (named == told) return;
    refuse("its senders are told " + std::to_string(told) + " outcomes, and the plan expects " + std::to_string(named),
           "correct expected; see docs/rehearsal.md for the scenario");
  }

  // No effects show nothing. More than there are keys would call a double effect what was expected.
  void check_effects() const {
    const std::uint64_t wanted = expected("effects");
    const std::uint64_t keys = seeds_.keys * scenario_.ids(planned_.copies);
    const std::uint64_t most = scenario_.risk.empty() ? keys : 2 * keys;
    if (wanted == 0) refuse("without an effect it shows nothing", "write effects = N, 1 or more");
    if (wanted > most) {
      refuse("effects = " + std::to_string(wanted) + " would be double ones: the seeds have " + std::to_string(keys) +
                 " different keys",
             "write " + std::to_string(most) + " or less");
    }
  }

  const Plan &plan_;
  const SeedCounts &seeds_;
  const ScenarioPlan &planned_;
  const Scenario &scenario_;
  bool is_foreign_;
};

void check_words(const Plan &plan) {
  const auto refuse = [&](const std::string &key, const std::string &cause, const std::string &remedy) {
    throw Refused{{ErrorCode::configuration, plan.file + ": " + key, cause, remedy}};
  };
  for (const auto &[key, words] : {std::pair<std::string, const CommandWords &>("worker.command", plan.worker.command),
                                   {"worker.count", plan.worker.count},
                                   {"handler.command", plan.handler.command},
                                   {"handler.reconcile", plan.handler.reconcile},
                                   {"handler.provider", plan.handler.provider}}) {
    if (words.empty()) continue;
    if (!is_program(words.front()))
      refuse(key, "there is no program " + Json(words.front()).dump(-1, ' ', true), "correct the path");
    if (std::any_of(words.begin(), words.end(), [](const std::string &word) { return word.find('\0') != word.npos; }))
      refuse(key, "a word holds a zero byte", "leave it out");
  }
  for (const auto &[name, value] : plan.handler.environment) {
    const bool is_name = !name.empty() && name.find('=') == std::string::npos && !holds_control(name);
    if (!is_name || value.find('\0') != std::string::npos)
      refuse("handler.environment", "no variable can be set so: " + Json(name).dump(-1, ' ', true), "correct it");
  }
  if (holds_control(plan.worker.kill_when))
    refuse("worker.kill_when", "no line of the worker begins so, as it holds a control character", "correct it");
}

} // namespace

Result<void> check_plan(const Plan &plan, const std::vector<ScenarioPlan> &scenarios) {
  try {
    check_words(plan);
    const SeedCounts seeds = seed_counts_of(plan.seeds);
    for (const ScenarioPlan &scenario : scenarios)
      Check(plan, seeds, scenario).run();
    return {};
  } catch (const Refused &refused) {
    return tl::unexpected(refused.error);
  }
}

} // namespace onced::rehearsal
