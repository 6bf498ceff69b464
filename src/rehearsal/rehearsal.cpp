#include "rehearsal/rehearsal.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include <linux/magic.h>
#include <pwd.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "onced/digest.hpp"
#include "rehearsal/constraint.hpp"
#include "rehearsal/evidence.hpp"
#include "rehearsal/scenarios.hpp"
#include "rehearsal/stage.hpp"

namespace onced::rehearsal {
namespace {

// A directory with a short path, as that of a socket is at most 107 bytes; removed at the end.
class SocketDirectory {
public:
  SocketDirectory() {
    if (::mkdtemp(name_.data()) == nullptr) throw StageFailure("no directory for sockets can be made in /tmp");
  }
  ~SocketDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  SocketDirectory(const SocketDirectory &) = delete;
  SocketDirectory &operator=(const SocketDirectory &) = delete;

  [[nodiscard]] const std::string &path() const { return name_; }

private:
  std::string name_ = "/tmp/onced-rehearsal-XXXXXX";
};

std::string joined(const Words &words) {
  std::string text;
  for (const std::string &word : words) {
    const bool plain = word.find_first_of(" \"'$\\*") == std::string::npos;
    text.append(text.empty() ? "" : " ").append(plain ? word : "'" + word + "'");
  }
  return text;
}

Json null_or(const std::string &text) {
  return text.empty() ? Json() : Json(text);
}

// --- One scenario -------------------------------------------------------------------------------------------------

struct Played {
  Json facts;
  Json observed;
  std::vector<double> recovery_ms;
};

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

ScenarioCounts seen_of(const std::vector<Json> &told, const EffectCounts &before, const EffectCounts &after) {
  ScenarioCounts seen;
  for (const std::string_view name : count_names)
    seen[std::string(name)] = 0;
  for (const Json &line : told) {
    ++seen[line["outcome"].get<std::string>()];
  }
  seen["effects"] = after.results - before.results;
  seen["dead_letters"] = after.dead_letters - before.dead_letters;
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

Json queries_of(const Stage &stage) {
  Json queries = Json::array({joined(stage.count_command())});
  if (!stage.setting().is_foreign()) {
    queries.push_back("ldb --db=" + (stage.data() / "db").string() +
                      " --column_family=operations scan --hex --no_value | wc -l");
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
  control.worker.command = {command,     "--data",  "{data}", "--jobs", "{jobs}", "--replies",
                            "{replies}", "--guard", guard,    "--wait"};
  control.worker.count = {command, "--data", "{data}", "--count"};
  control.worker.kill_when = "committed";
  return control;
}

// What a scenario is before it is played; where it is skipped it stays so.
Played blank(const Setting &setting, const ScenarioPlan &plan, const Scenario &scenario) {
  Played played;
  played.facts = {{"name", plan.name},
                  {"title", scenario.title},
                  {"worker", worker_name(setting, scenario)},
                  {"is_control", !scenario.guard.empty()},
                  {"status", "skipped"},
                  {"why", nullptr},
                  {"kill_point", null_or(std::string(scenario.kill_point))},
                  {"expected", counts_of(plan.expected)},
                  {"seen", nullptr},
                  {"differences", Json::array()},
                  {"effects_before", nullptr},
                  {"effects_after", nullptr},
                  {"outcomes", Json::array()}};
  played.observed = {{"name", plan.name},          {"started_at", nullptr},    {"ended_at", nullptr},
                     {"directory", nullptr},       {"endpoints", nullptr},     {"processes", Json::array()},
                     {"queries", Json::array()},   {"timeline", Json::array()}, {"evidence", Json::array()}};
  return played;
}

void fill_counts(Json &facts, const Stage &stage, const ScenarioPlan &plan, const EffectCounts &before,
                 const EffectCounts &after) {
  const ScenarioCounts seen = seen_of(stage.told(), before, after);
  facts["differences"] = differences_of(plan.expected, seen);
  facts["status"] = facts["differences"].empty() ? "passed" : "failed";
  facts["seen"] = counts_of(seen);
  facts["effects_before"] = before.results;
  facts["effects_after"] = after.results;
  facts["outcomes"] = outcomes_of(stage.told());
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
    facts["differences"].push_back("effects: expected " + std::to_string(wanted) + " or more, and more than jobs; seen " +
                                   std::to_string(effects));
  }
}

void fill(Played &played, Stage &stage, const ScenarioPlan &plan, const EffectCounts &before) {
  const EffectCounts after = stage.count();
  if (played.facts["is_control"]) {
    fill_control(played.facts, stage, plan, after.results);
  } else {
    fill_counts(played.facts, stage, plan, before, after);
  }
  const auto evidence = gather_evidence(stage);
  if (!evidence) throw StageFailure("the evidence cannot be read: " + describe(evidence.error()));
  played.observed["timeline"] = evidence->timeline;
  played.observed["evidence"] = evidence->rows;
  played.observed["queries"] = queries_of(stage);
  played.recovery_ms = evidence->recovery_ms;
}

Played play_on_stage(const Setting &setting, const ScenarioPlan &plan, const std::filesystem::path &directory,
            const std::string &sockets, const Scenario &scenario, Played played) {
  played.observed["started_at"] = iso_time(setting.clock.wall());
  played.observed["directory"] = directory.string();
  Stage stage(setting, plan, directory, sockets);
  played.observed["endpoints"] = {{"jobs", stage.jobs_endpoint()}, {"replies", stage.replies_endpoint()}};
  try {
    const EffectCounts before; // the directory is fresh
    scenario.play(stage);
    stage.stop_worker();
    fill(played, stage, plan, before);
  } catch (const StageFailure &failure) {
    played.facts["status"] = "failed";
    played.facts["why"] = failure.what();
  }
  stage.end_all();
  played.observed["processes"] = processes_of(stage);
  played.observed["ended_at"] = iso_time(setting.clock.wall());
  return played;
}

Played play(const Setting &setting, const ScenarioPlan &plan, const std::filesystem::path &directory,
            const std::string &sockets) {
  const Scenario &scenario = *find_scenario(plan.name);
  Played played = blank(setting, plan, scenario);
  if (!scenario.guard.empty()) {
    const std::string command = setting.command + "-unguarded";
    if (!std::filesystem::exists(command)) {
      played.facts["why"] = "the unguarded worker, onced-unguarded, is not beside onced";
      return played;
    }
    const Plan control = control_plan(setting.plan, std::string(scenario.guard), command);
    const Setting control_setting{.plan = control,
                                  .command = setting.command,
                                  .seed = setting.seed,
                                  .fast = setting.fast,
                                  .clock = setting.clock};
    return play_on_stage(control_setting, plan, directory, sockets, scenario, std::move(played));
  }
  if (setting.is_foreign() && !scenario.foreign_obstacle.empty()) {
    played.facts["why"] = scenario.foreign_obstacle;
    return played;
  }
  return play_on_stage(setting, plan, directory, sockets, scenario, std::move(played));
}

// --- The record ---------------------------------------------------------------------------------------------------

std::string sha256_of(const std::string &bytes) {
  return to_hex(Digester().plain(bytes).view());
}

Json worker_of(const Setting &setting) {
  const WorkerPlan &worker = setting.plan.worker;
  const bool foreign = setting.is_foreign();
  return {{"kind", foreign ? "command" : "onced"},
          {"command", foreign ? Json(joined(worker.command)) : Json()},
          {"count", foreign ? Json(joined(worker.count)) : Json()},
          {"kill_when", null_or(worker.kill_when)},
          {"threads", worker.threads},
          {"durability", worker.durability},
          {"retry_policy", worker.retry_policy},
          {"visibility_timeout_ms", setting.visibility_timeout().count()}};
}

// The first delivery that found its key there.
Json failing_insert_of(const std::vector<Played> &played) {
  for (const Played &one : played) {
    for (const Json &outcome : one.facts["outcomes"]) {
      if (outcome["outcome"] != "duplicate" && outcome["outcome"] != "conflict") continue;
      return {{"scenario", one.facts["name"]},
              {"operation_id", outcome["operation_id"]},
              {"outcome", outcome["outcome"]},
              {"effects", 1}};
    }
  }
  return nullptr;
}

Json counts_of(const std::vector<Played> &played) {
  const auto with = [&](const char *status) {
    return std::count_if(played.begin(), played.end(),
                         [&](const Played &one) { return one.facts["status"] == status; });
  };
  return {{"scenarios", played.size()},
          {"passed", with("passed")},
          {"failed", with("failed")},
          {"skipped", with("skipped")}};
}

Json facts_of(const Setting &setting, const RehearsalOptions &options, const std::vector<Played> &played) {
  const Plan &plan = setting.plan;
  const Json counts = counts_of(played);
  const bool passed = counts["failed"] == 0 && counts["passed"] > 0;
  const Constraint definition = constraint();
  Json facts{
      {"verdict", passed ? "passed" : "failed"},
      {"counts", counts},
      {"plan",
       {{"name", plan.name}, {"file", plan.file}, {"sha256", sha256_of(plan.text)}, {"review_by", plan.review_by}}},
      {"seeds",
       {{"file", plan.seeds.file},
        {"sha256", sha256_of(plan.seeds.text)},
        {"jobs", plan.seeds.lines.size()},
        {"type", plan.seeds.type},
        {"schema", plan.seeds.schema},
        {"conflicting", plan.seeds.conflicting}}},
      {"side_effect",
       {{"name", plan.side_effect.name},
        {"recorded_in", plan.side_effect.recorded_in},
        {"owner", plan.side_effect.owner},
        {"duplicate_accepted_by", plan.side_effect.duplicate_accepted_by},
        {"reconciliation_owner", plan.side_effect.reconciliation_owner}}},
      {"options", {{"seed", options.seed}, {"fast", options.fast}, {"only", null_or(options.only)}}},
      {"worker", worker_of(setting)},
      {"constraint", nullptr},
      {"failing_insert", failing_insert_of(played)},
      {"scenarios", Json::array()},
      {"commands",
       {{"seed", "onced send " + plan.seeds.file},
        {"rerun", "onced rehearse --rerun RECORD_DIR"},
        {"verify", "onced rehearse --verify RECORD_DIR"}}},
      {"cannot_reproduce",
       {"a power cut: processes are killed, so what the kernel holds survives", "a disk that lies about fdatasync",
        "a network: worker and sender are on one machine, over ipc sockets"}},
      {"unproven",
       {"retries beyond the deadline of a sender", "the timeout at its full length, where --fast shortens it",
        "reconciliation of effects outside the store: not applicable until there are queued jobs"}}};
  if (!setting.is_foreign()) {
    facts["constraint"] = {
        {"key", definition.key}, {"digest", definition.digest}, {"transaction", definition.transaction}};
  }
  for (const Played &one : played)
    facts["scenarios"].push_back(one.facts);
  return facts;
}

// --- What was observed --------------------------------------------------------------------------------------------

std::string user_name() {
  const passwd *user = ::getpwuid(::geteuid());
  return user == nullptr ? "unknown" : user->pw_name;
}

// The effective capabilities, as the kernel prints them.
std::string rights() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) return "effective capabilities " + line.substr(line.find_last_of(" \t") + 1);
  }
  return "unknown";
}

std::string file_system_of(const std::filesystem::path &directory) {
  struct statfs status {};
  if (::statfs(directory.c_str(), &status) != 0) return "unknown";
  const auto type = static_cast<unsigned long>(status.f_type);
  if (type == TMPFS_MAGIC) return "tmpfs: in memory, where a sync costs nothing";
  if (type == EXT4_SUPER_MAGIC) return "ext4";
  if (type == XFS_SUPER_MAGIC) return "xfs";
  if (type == BTRFS_SUPER_MAGIC) return "btrfs";
  if (type == OVERLAYFS_SUPER_MAGIC) return "overlayfs";
  return "type " + std::to_string(type);
}

Json setting_of(const Setting &setting, const std::filesystem::path &out) {
  utsname system{};
  ::uname(&system);
  return {{"host", system.nodename},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"cores", std::thread::hardware_concurrency()},
          {"file_system", file_system_of(out)},
          {"durability", setting.plan.worker.durability}};
}

Json build_of(const Setting &setting, const std::filesystem::path &out) {
  Child version({.role = "version",
                 .command = {setting.command, "--version", "--json"},
                 .log = out / "version.log",
                 .on_line = {}},
                setting.clock);
  const Json build = Json::parse(version.first_line(), nullptr, false);
  version.wait();
  std::error_code ignored;
  std::filesystem::remove(out / "version.log", ignored);
  return build;
}

Json measure(const std::string &name, const Json &value, const std::string &unit, const Json &numerator,
             const Json &denominator, const std::string &window) {
  return {{"name", name},           {"value", value},   {"unit", unit}, {"numerator", numerator},
          {"denominator", denominator}, {"window", window}};
}

Json ratio(std::uint64_t numerator, std::uint64_t denominator, double factor) {
  if (denominator == 0) return nullptr;
  return factor * static_cast<double>(numerator) / static_cast<double>(denominator);
}

Json measures_of(const std::vector<Played> &played) {
  const std::string window = "this run, all scenarios that ran";
  std::uint64_t deliveries = 0;
  std::uint64_t accepted = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t double_effects = 0;
  std::vector<double> recovery;
  for (const Played &one : played) {
    if (one.facts["seen"].is_null() || one.facts["is_control"]) continue;
    const Json &seen = one.facts["seen"];
    const auto stored = seen["stored"].get<std::uint64_t>();
    deliveries += one.observed["evidence"].size();
    accepted += stored + seen["duplicate"].get<std::uint64_t>();
    duplicates += seen["duplicate"].get<std::uint64_t>();
    const auto effects = seen["effects"].get<std::uint64_t>();
    const auto wanted = one.facts["expected"].value("effects", std::uint64_t{0});
    double_effects += effects > wanted ? effects - wanted : 0;
    recovery.insert(recovery.end(), one.recovery_ms.begin(), one.recovery_ms.end());
  }
  std::sort(recovery.begin(), recovery.end());
  const Json p50 = recovery.empty() ? Json() : Json(recovery[(recovery.size() - 1) / 2]);
  const Json max = recovery.empty() ? Json() : Json(recovery.back());
  return Json::array(
      {measure("duplicate_effects_per_1000_accepted_jobs", ratio(double_effects, accepted, 1000), "per 1,000",
               double_effects, accepted, window),
       measure("reconciled_jobs_per_100_failures", nullptr, "not applicable", 0, 0, window),
       measure("recovery_p50_ms", p50, "ms", nullptr, recovery.size(), "from each kill to the first acknowledgement"),
       measure("recovery_max_ms", max, "ms", nullptr, recovery.size(), "from each kill to the first acknowledgement"),
       measure("duplicate_rate", ratio(duplicates, accepted, 1), "of accepted", duplicates, accepted, window),
       measure("duplicate_volume", duplicates, "deliveries", duplicates, deliveries, window)});
}

Error usage(const std::string &concerns, std::string cause, std::string remedy) {
  return {ErrorCode::usage, concerns, std::move(cause), std::move(remedy)};
}

std::string folder_of(const std::string &scenario) {
  std::string folder = scenario;
  std::replace(folder.begin(), folder.end(), ' ', '-');
  return folder;
}

Result<void> prepare(const std::filesystem::path &out) {
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) {
    return tl::unexpected(
        Error{ErrorCode::store_unavailable, out.string(), error.message(), "give a directory that may be written to"});
  }
  if (!std::filesystem::is_empty(out, error) || error) {
    return tl::unexpected(usage(out.string(), "it is not empty", "give --out a directory that is absent or empty"));
  }
  return {};
}

// A control must name the doubles that it shows, and nothing else may.
Result<void> check(const ScenarioPlan &scenario, const std::string &file) {
  const bool is_control = !find_scenario(scenario.name)->guard.empty();
  if (is_control == scenario.expected.contains("effects_min")) return {};
  return tl::unexpected(Error{ErrorCode::configuration, file + ": " + scenario.name,
                              is_control ? "a control without effects_min" : "effects_min, and this is no control",
                              is_control ? "write expected = { effects_min = N }" : "write effects"});
}

std::vector<ScenarioPlan> chosen(const Plan &plan, const std::string &only) {
  std::vector<ScenarioPlan> scenarios;
  std::copy_if(plan.scenarios.begin(), plan.scenarios.end(), std::back_inserter(scenarios),
               [&](const ScenarioPlan &scenario) { return only.empty() || scenario.name == only; });
  return scenarios;
}

} // namespace

Result<Json> rehearse(const RehearsalOptions &options, const Plan &plan, Clock &clock, const OnScenario &on_scenario) {
  const std::vector<ScenarioPlan> scenarios = chosen(plan, options.only);
  if (scenarios.empty()) {
    return tl::unexpected(usage(options.only, "the plan has no such scenario", "give one of those in " + plan.file));
  }
  for (const ScenarioPlan &scenario : scenarios) {
    if (auto checked = check(scenario, plan.file); !checked) return tl::unexpected(checked.error());
  }
  const std::filesystem::path out = std::filesystem::absolute(options.out);
  if (const auto prepared = prepare(out); !prepared) return tl::unexpected(prepared.error());
  const Setting setting{
      .plan = plan, .command = options.command, .seed = options.seed, .fast = options.fast, .clock = clock};
  try {
    const SocketDirectory sockets;
    const std::string started_at = iso_time(clock.wall());
    std::vector<Played> played;
    for (const ScenarioPlan &scenario : scenarios) {
      const std::string number = std::to_string(played.size() + 1);
      played.push_back(
          play(setting, scenario, out / "scenarios" / folder_of(scenario.name), sockets.path() + "/" + number));
      on_scenario(played.back().facts);
    }
    Json observed{{"started_at", started_at},
                  {"ended_at", iso_time(clock.wall())},
                  {"directory", out.string()},
                  {"ran_as", {{"user", user_name()}, {"uid", ::geteuid()}, {"rights", rights()}}},
                  {"build", build_of(setting, out)},
                  {"setting", setting_of(setting, out)},
                  {"measures", measures_of(played)},
                  {"scenarios", Json::array()}};
    for (Played &one : played)
      observed["scenarios"].push_back(std::move(one.observed));
    return Json{{"format", "onced rehearsal"},
                {"version", 1},
                {"facts", facts_of(setting, options, played)},
                {"observed", std::move(observed)}};
  } catch (const StageFailure &failure) {
    return tl::unexpected(Error{ErrorCode::internal, "the rehearsal", failure.what(), "run it again"});
  }
}

} // namespace onced::rehearsal
