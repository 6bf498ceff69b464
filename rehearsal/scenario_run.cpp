#include "rehearsal/scenario_run.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "rehearsal/companion.hpp"
#include "rehearsal/evidence.hpp"
#include "rehearsal/scenarios.hpp"
#include "rehearsal/text.hpp"
#include "rehearsal/time.hpp"

namespace onced::rehearsal {
namespace {

std::map<std::pair<std::string, std::string>, std::uint64_t> tally_of(const std::vector<Json> &told) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> tally;
  for (const Json &line : told)
    ++tally[{line.value("operation_id", ""), line["outcome"].get<std::string>()}];
  return tally;
}

Json outcomes_of(const std::vector<Json> &told) {
  Json outcomes = Json::array();
  for (const auto &[name, count] : tally_of(told)) {
    outcomes.push_back({{"operation_id", null_or(name.first)}, {"outcome", name.second}, {"count", count}});
  }
  return outcomes;
}

Json counts_of(const ScenarioCounts &counts) {
  Json json = Json::object();
  for (const std::string_view name : count_names) {
    if (const auto found = counts.find(name); found != counts.end()) json[std::string(name)] = found->second;
  }
  if (const auto found = counts.find("effects_min"); found != counts.end()) json["effects_min"] = found->second;
  return json;
}

// What a scenario has left to be counted.
struct Counted {
  std::uint64_t before = 0; // in the store
  EffectCounts effects;     // in the store
  std::uint64_t at_provider_before = 0;
  std::uint64_t at_provider = 0;
  std::uint64_t late = 0;
  bool is_at_provider = false; // where its effects are

  [[nodiscard]] std::uint64_t first() const { return is_at_provider ? at_provider_before : before; }
  [[nodiscard]] std::uint64_t last() const { return is_at_provider ? at_provider : effects.results; }
  [[nodiscard]] std::uint64_t made() const { return last() - first(); }
};

ScenarioCounts seen_of(const std::vector<Json> &told, const Counted &counted) {
  ScenarioCounts seen;
  for (const std::string_view name : count_names)
    seen[std::string(name)] = 0;
  for (const Json &line : told) {
    ++seen[line["outcome"].get<std::string>()];
  }
  seen["effects"] = counted.made();
  seen["dead_letters"] = counted.effects.dead_letters;
  seen["late"] = counted.late;
  return seen;
}

Json differences_of(const ScenarioCounts &expected, const ScenarioCounts &seen) {
  Json differences = Json::array();
  for (const auto &[name, count] : seen) {
    const auto found = expected.find(name);
    const std::uint64_t wanted = found == expected.end() ? 0 : found->second;
    if (wanted == count) continue;
    differences.push_back(name + ": expected " + std::to_string(wanted) + ", seen " + std::to_string(count));
  }
  return differences;
}

Json processes_of(const Stage &stage) {
  Json processes = Json::array();
  for (const auto &child : stage.children()) {
    processes.push_back({{"role", child->role()},
                         {"command", joined(child->command())},
                         {"pid", child->id()},
                         {"started_at", iso_time(child->started_at())},
                         {"ended_at", iso_time(child->ended_at())},
                         {"end", child->end()}});
  }
  return processes;
}

// The commands that count, with what they have counted; one of them decides. The last is no part of onced, and is left
// to whoever wants to count without it.
Json queries_of(const Stage &stage, const Scenario &scenario, const Counted &counted) {
  Json queries = Json::array({{{"command", joined(stage.count_command())},
                               {"before", counted.before},
                               {"after", counted.effects.results},
                               {"decides", !counted.is_at_provider}}});
  if (scenario.has_provider) {
    queries.push_back({{"command", joined({"wc", "-l", stage.effects_file()})},
                       {"before", counted.at_provider_before},
                       {"after", counted.at_provider},
                       {"decides", counted.is_at_provider}});
  }
  if (!stage.setting().is_foreign()) {
    const std::string database = "--db=" + (stage.data() / "db").string();
    const std::string scan = joined({"ldb", database, "--column_family=operations", "scan", "--hex", "--no_value"});
    queries.push_back({{"command", scan + " | wc -l"}, {"before", nullptr}, {"after", nullptr}, {"decides", false}});
  }
  return queries;
}

std::string worker_name(const Setting &setting, const Scenario &scenario) {
  if (!scenario.guard.empty()) return "unguarded: " + std::string(scenario.guard);
  return setting.is_foreign() ? "command" : "onced";
}

// The plan with the unguarded worker in the place of its own.
Plan control_plan(const Plan &plan, const std::string &guard, const std::string &command) {
  Plan control = plan;
  control.worker.command = {command,     "--data",    "{data}",  "--jobs", "{jobs}",
                            "--replies", "{replies}", "--guard", guard,    "--wait"};
  control.worker.count = {command, "--data", "{data}", "--count"};
  control.worker.kill_when = "committed";
  return control;
}

// What a scenario is before it is played; where it is skipped it stays so.
Played unplayed(const Setting &setting, const ScenarioPlan &plan, const Scenario &scenario) {
  Played played;
  played.facts = {{"name", plan.name},
                  {"title", scenario.title},
                  {"worker", worker_name(setting, scenario)},
                  {"is_control", !scenario.guard.empty()},
                  {"risk", null_or(scenario.risk)},
                  {"status", "skipped"},
                  {"why", nullptr},
                  {"kill_point", null_or(scenario.kill_point)},
                  {"jobs", jobs_of(scenario, setting.plan.seeds, plan.copies)},
                  {"expected", counts_of(plan.expected)},
                  {"seen", nullptr},
                  {"differences", Json::array()},
                  {"effects_before", nullptr},
                  {"effects_after", nullptr},
                  {"outcomes", Json::array()}};
  played.observed = {{"name", plan.name},        {"started_at", nullptr},     {"ended_at", nullptr},
                     {"directory", nullptr},     {"endpoints", nullptr},      {"processes", Json::array()},
                     {"queries", Json::array()}, {"timeline", Json::array()}, {"backlog", Json::array()},
                     {"effects", Json::array()}, {"late", Json::array()},     {"handled", nullptr},
                     {"events_dropped", 0},      {"evidence", Json::array()}};
  return played;
}

std::vector<Json> told_to_senders(const Stage &stage, const Scenario &scenario) {
  std::vector<Json> told = stage.told();
  for (Json &line : told)
    line["outcome"] = told_as(scenario, line["outcome"]);
  return told;
}

void fill_counts(Json &facts, const std::vector<Json> &told, const ScenarioPlan &plan, const Counted &counted) {
  const ScenarioCounts seen = seen_of(told, counted);
  facts["differences"] = differences_of(plan.expected, seen);
  facts["status"] = facts["differences"].empty() ? "passed" : "failed";
  facts["seen"] = counts_of(seen);
  facts["effects_before"] = counted.first();
  facts["effects_after"] = counted.last();
  facts["outcomes"] = outcomes_of(told);
}

// How many doubles chance gives is no fact; that there are as many as expected is.
void fill_control(Json &facts, const Stage &stage, const ScenarioPlan &plan, std::uint64_t effects) {
  const std::uint64_t wanted = plan.expected.at("effects_min");
  const std::set<std::string> jobs(stage.setting().plan.seeds.operation_ids.begin(),
                                   stage.setting().plan.seeds.operation_ids.end());
  const std::uint64_t shown = std::min(effects, wanted);
  const std::uint64_t doubles = shown > jobs.size() ? shown - jobs.size() : 0;
  facts["seen"] = {{"effects", shown}, {"jobs", jobs.size()}, {"double_effects", doubles}};
  facts["status"] = shown == wanted && doubles > 0 ? "passed" : "failed";
  if (facts["status"] == "failed") {
    facts["differences"].push_back("effects: expected " + std::to_string(wanted) + " or more, and more than jobs");
  }
}

// Acknowledgements that a sender has got while the store was unavailable, of what was not committed before.
std::size_t false_acknowledgements(const Evidence &evidence) {
  std::size_t count = 0;
  std::string since; // times of one form compare as texts
  for (const Json &entry : evidence.timeline) {
    if (entry["what"] == "unavailable") since = entry["at"];
    if (entry["what"] != "available" || since.empty()) continue;
    count += static_cast<std::size_t>(std::count_if(evidence.rows.begin(), evidence.rows.end(), [&](const Json &row) {
      const Json &told = row["acknowledgement_at"];
      const bool meanwhile = !told.is_null() && told >= since && told <= entry["at"];
      return meanwhile && (row["commit_at"].is_null() || row["commit_at"] > since);
    }));
  }
  return count;
}

void fill(Played &played, Stage &stage, const ScenarioPlan &plan, const Scenario &scenario, Counted counted) {
  counted.effects = stage.count();
  const auto evidence = gather_evidence(stage, scenario.has_backlog);
  if (!evidence) throw StageFailure("the evidence cannot be read: " + describe(evidence.error()));
  counted.at_provider = evidence->effects.size();
  counted.late = evidence->late.size();
  if (counted.last() < counted.first()) throw StageFailure("there are fewer effects after the run than before");
  if (scenario.guard.empty()) {
    fill_counts(played.facts, told_to_senders(stage, scenario), plan, counted);
  } else {
    fill_control(played.facts, stage, plan, counted.made());
  }
  played.observed["timeline"] = evidence->timeline;
  played.observed["backlog"] = evidence->backlog;
  played.observed["effects"] = evidence->effects;
  played.observed["late"] = evidence->late;
  played.observed["handled"] = stage.handled();
  played.observed["evidence"] = evidence->rows;
  played.observed["events_dropped"] = stage.events_dropped();
  played.observed["queries"] = queries_of(stage, scenario, counted);
  if (played.observed["events_dropped"] > 0) throw StageFailure("events could not be written, so they are no evidence");
  if (evidence->in_hand_max > burst_window_jobs) throw StageFailure("more jobs were in hand at once than the window");
  if (false_acknowledgements(*evidence) > 0)
    throw StageFailure("acknowledgements came while the store was unavailable");
}

void play_to_its_end(Played &played, Stage &stage, const ScenarioPlan &plan, const Scenario &scenario) {
  const Patience &patience = stage.setting().patience;
  played.observed["endpoints"] = {{"jobs", stage.jobs_endpoint()}, {"replies", stage.replies_endpoint()}};
  try {
    Counted counted;
    counted.is_at_provider = scenario.has_provider;
    counted.before = stage.count_before();
    counted.at_provider_before = stage.count_at_provider();
    scenario.play(stage);
    if (scenario.needs_handler) stage.count_handled();
    stage.stop_worker();
    stage.stop_next_worker();
    stage.stop_provider();
    patience.check();
    stage.leave_disk();
    fill(played, stage, plan, scenario, counted);
  } catch (const Interrupted &) {
    throw;
  } catch (const StageUnavailable &) {
    throw;
  } catch (const std::exception &failure) {
    played.facts["status"] = "failed";
    played.facts["why"] = failure.what();
  }
  stage.end_all();
  played.observed["processes"] = processes_of(stage);
}

// Where it cannot be played here, it is as if it had not begun.
Played play_on_stage(const Setting &setting, const ScenarioPlan &plan, const std::filesystem::path &directory,
                     const std::filesystem::path &sockets, const Scenario &scenario, const Played &blank) {
  Played played = blank;
  played.observed["started_at"] = iso_time(setting.patience.clock().wall());
  played.observed["directory"] = directory.string();
  try {
    Stage stage(setting, plan, directory, sockets);
    play_to_its_end(played, stage, plan, scenario);
  } catch (const StageUnavailable &reason) {
    played = blank;
    played.facts["why"] = reason.what();
    return played;
  } catch (const std::filesystem::filesystem_error &failure) {
    played.facts["status"] = "failed";
    played.facts["why"] = failure.code().message();
  }
  played.observed["ended_at"] = iso_time(setting.patience.clock().wall());
  return played;
}

Played play_control(const Setting &setting, const ScenarioPlan &plan, const std::filesystem::path &directory,
                    const std::filesystem::path &sockets, const Scenario &scenario, const Played &blank) {
  const std::string command = companion_of(setting.command, "unguarded");
  if (command.empty()) {
    Played skipped = blank;
    skipped.facts["why"] = "the unguarded worker, onced-unguarded, is not where onced is";
    return skipped;
  }
  const Plan control = control_plan(setting.plan, std::string(scenario.guard), command);
  const Setting control_setting{.plan = control,
                                .command = setting.command,
                                .seed = setting.seed,
                                .fast = setting.fast,
                                .mounts_obstacle = setting.mounts_obstacle,
                                .patience = setting.patience};
  return play_on_stage(control_setting, plan, directory, sockets, scenario, blank);
}

} // namespace

Played play(const Setting &setting, const ScenarioPlan &plan, const std::filesystem::path &directory,
            const std::filesystem::path &sockets) {
  const Scenario &scenario = *find_scenario(plan.name);
  Played blank = unplayed(setting, plan, scenario);
  if (!scenario.guard.empty()) return play_control(setting, plan, directory, sockets, scenario, blank);
  if (setting.is_foreign() && !scenario.foreign_obstacle.empty()) {
    blank.facts["why"] = scenario.foreign_obstacle;
    return blank;
  }
  return play_on_stage(setting, plan, directory, sockets, scenario, blank);
}

} // namespace onced::rehearsal
