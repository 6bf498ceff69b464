#include "rehearsal/rehearsal.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/scratch_directory.hpp"
#include "base/utf8.hpp"
#include "onced/digest.hpp"
#include "onced/store.hpp"
#include "rehearsal/conclusions.hpp"
#include "rehearsal/machine.hpp"
#include "rehearsal/plan_check.hpp"
#include "rehearsal/record.hpp"
#include "rehearsal/scenario_run.hpp"
#include "rehearsal/scenarios.hpp"
#include "rehearsal/stage.hpp"
#include "rehearsal/time.hpp"

namespace onced::rehearsal {
namespace {

// The path of a socket is at most 107 bytes.
constexpr std::size_t sockets_parent_bytes_max = 60;

// Empty: among the temporary files.
std::filesystem::path parent_of_sockets() {
  std::error_code ignored;
  const std::string temporary = std::filesystem::temp_directory_path(ignored).string();
  return temporary.size() > sockets_parent_bytes_max ? "/tmp" : "";
}

// --- The facts ----------------------------------------------------------------------------------------------------

// Whether it was played to an end.
bool was_played(const std::vector<Played> &played, const std::string &name) {
  return std::any_of(played.begin(), played.end(),
                     [&](const Played &one) { return one.facts["name"] == name && !one.facts["seen"].is_null(); });
}

Json cannot_reproduce(const std::vector<Played> &played) {
  Json texts = Json::array();
  if (was_played(played, "power loss")) {
    texts.push_back("a disk that loses or reorders what it was given: the power loss takes what the kernel still held");
  } else {
    texts.push_back("a power cut: processes are killed, so what the kernel holds survives");
  }
  texts.push_back("a disk that lies about fdatasync");
  texts.push_back("a network: worker and sender are on one machine, over ipc sockets");
  return texts;
}

Json constraint_of(const Setting &setting) {
  if (setting.is_foreign()) return nullptr;
  const std::string form = "; the form's version is " + std::to_string(canonical_form_version);
  return {{"key", key_definition},
          {"digest", std::string(digest_definition) + form},
          {"transaction", transaction_definition}};
}

Json unproven(const std::vector<Played> &played) {
  Json texts{
      "retries beyond the deadline of a sender",
      "retries by timeout but in the lost acknowledgement: elsewhere the greeting of the restarted worker comes first",
      "the timeout at its full length, where --fast shortens it"};
  const bool outside =
      std::any_of(played.begin(), played.end(), [](const Played &one) { return !one.observed["effects"].empty(); });
  texts.push_back(outside ? "effects at a provider that is not the plan's, and calls of it that overtake each other"
                          : "effects outside the store: no scenario with a provider was played");
  return texts;
}

Json facts_of(const Setting &setting, const RehearsalOptions &options, const std::vector<Played> &played,
              const Json &observed_scenarios) {
  Json scenarios = Json::array();
  for (const Played &one : played)
    scenarios.push_back(one.facts);
  const Json counts = counts_of_scenarios(scenarios);
  Json said = facts_of_plan(setting.plan, setting.fast);
  return {{"verdict", verdict_of(counts)},
          {"counts", counts},
          {"plan", said["plan"]},
          {"seeds", said["seeds"]},
          {"side_effect", said["side_effect"]},
          {"options", {{"seed", options.seed}, {"fast", options.fast}, {"only", null_or(options.only)}}},
          {"worker", said["worker"]},
          {"constraint", constraint_of(setting)},
          {"failing_insert", failing_insert_of(scenarios, observed_scenarios)},
          {"scenarios", std::move(scenarios)},
          {"commands",
           {{"verify", "onced rehearse --verify RECORD_DIR"},
            {"rerun", std::string("onced rehearse --rerun RECORD_DIR") +
                          (commands_of(setting.plan).empty() ? "" : " --run-commands")},
            {"review", "onced rehearse --review RECORD_DIR --by NAME --decision " +
                           std::string(verdict_of(counts) == "passed" ? decision_accepted : decision_rejected) +
                           " --note TEXT"}}},
          {"cannot_reproduce", cannot_reproduce(played)},
          {"unproven", unproven(played)}};
}

// --- What was observed --------------------------------------------------------------------------------------------

Json build_of(const Setting &setting) {
  Child version(
      {.role = "version", .command = {setting.command, "--version", "--json"}, .log = "/dev/null", .on_line = {}},
      setting.patience);
  Json build = parse_json(version.first_line());
  version.wait();
  if (!build.is_object()) throw StageFailure("onced --version --json printed no object");
  return build;
}

// --- The run ------------------------------------------------------------------------------------------------------

Error usage(const std::string &concerns, std::string cause, std::string remedy) {
  return {ErrorCode::usage, concerns, std::move(cause), std::move(remedy)};
}

std::string folder_of(const std::string &scenario) {
  std::string folder = scenario;
  std::replace(folder.begin(), folder.end(), ' ', '-');
  return folder;
}

// Whether it was made.
Result<bool> prepare(const std::filesystem::path &out) {
  if (!utf8::valid(out.string())) {
    return tl::unexpected(usage("--out", "its path is no UTF-8, which a record is", "give another directory"));
  }
  std::error_code error;
  const bool made = std::filesystem::create_directories(out, error);
  if (error) {
    return tl::unexpected(
        Error{ErrorCode::store_unavailable, out.string(), error.message(), "give a directory that may be written to"});
  }
  if (!std::filesystem::is_empty(out, error) || error) {
    return tl::unexpected(usage(out.string(), "it is not empty", "give --out a directory that is absent or empty"));
  }
  if (!std::filesystem::create_directory(out / "scenarios", error)) {
    return tl::unexpected(usage(out.string(), "another rehearsal writes there", "give --out another directory"));
  }
  return made;
}

// Nothing is left of a run that did not come to its end.
void clean_up(const std::filesystem::path &out, bool was_made) {
  std::error_code ignored;
  std::filesystem::remove_all(out / "scenarios", ignored);
  if (was_made) std::filesystem::remove(out, ignored);
}

std::vector<Played> play_all(const Setting &setting, const std::vector<ScenarioPlan> &scenarios,
                             const std::filesystem::path &directory, const Progress &progress) {
  const auto sockets = ScratchDirectory::make(parent_of_sockets());
  if (!sockets) throw StageFailure(describe(sockets.error()));
  std::vector<Played> played;
  for (const ScenarioPlan &scenario : scenarios) {
    progress.begins(scenario.name);
    const std::string number = std::to_string(played.size() + 1);
    played.push_back(play(setting, scenario, directory / folder_of(scenario.name), sockets->path() / number));
    progress.ended(played.back().facts);
  }
  return played;
}

Json record_of(const Setting &setting, const RehearsalOptions &options, const Json &ran_as,
               const std::filesystem::path &out, const std::string &started_at, const std::vector<Played> &played) {
  Json observed{{"started_at", started_at},   {"ended_at", iso_time(setting.patience.clock().wall())},
                {"directory", out.string()},  {"ran_as", ran_as},
                {"build", build_of(setting)}, {"setting", machine_of(out, setting.plan.worker.durability)},
                {"measures", nullptr},        {"scenarios", Json::array()}};
  for (const Played &one : played)
    observed["scenarios"].push_back(one.observed);
  Json facts = facts_of(setting, options, played, observed["scenarios"]);
  observed["measures"] = measures_of(facts["scenarios"], observed["scenarios"]);
  return {{"format", "onced rehearsal"},
          {"version", record_version},
          {"facts", std::move(facts)},
          {"observed", std::move(observed)},
          {"reviews", Json::array()}};
}

} // namespace

bool needs_mounts(const Plan &plan, const std::string &only) {
  const std::vector<ScenarioPlan> scenarios = chosen(plan, only);
  return std::any_of(scenarios.begin(), scenarios.end(),
                     [](const ScenarioPlan &scenario) { return find_scenario(scenario.name)->needs_mounts; });
}

Result<Json> rehearse(const RehearsalOptions &options, const Surroundings &surroundings, const Plan &plan, Clock &clock,
                      const Progress &progress) {
  const std::vector<ScenarioPlan> scenarios = chosen(plan, options.only);
  if (scenarios.empty()) {
    return tl::unexpected(usage(options.only, "the plan has no such scenario", "give one of those in " + plan.file));
  }
  if (auto checked = check_plan(plan, scenarios); !checked) return tl::unexpected(checked.error());
  const std::filesystem::path out = std::filesystem::absolute(options.out);
  const auto prepared = prepare(out);
  if (!prepared) return tl::unexpected(prepared.error());
  const std::filesystem::path directory = out / "scenarios";
  const Setting setting{.plan = plan,
                        .command = options.command,
                        .seed = options.seed,
                        .fast = options.fast,
                        .mounts_obstacle = surroundings.mounts_obstacle,
                        .patience = Patience(clock, surroundings.interrupted)};
  try {
    const std::string started_at = iso_time(clock.wall());
    const std::vector<Played> played = play_all(setting, scenarios, directory, progress);
    return record_of(setting, options, surroundings.ran_as, out, started_at, played);
  } catch (const Interrupted &) {
    clean_up(out, *prepared);
    return tl::unexpected(Error{ErrorCode::timed_out, plan.file, "the rehearsal was interrupted", "run it again"});
  } catch (const StageFailure &failure) {
    clean_up(out, *prepared);
    return tl::unexpected(Error{ErrorCode::internal, "the rehearsal", failure.what(), "run it again"});
  }
}

} // namespace onced::rehearsal
