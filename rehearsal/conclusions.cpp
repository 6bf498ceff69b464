#include "rehearsal/conclusions.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rehearsal/files.hpp"
#include "rehearsal/text.hpp"
#include "rehearsal/time.hpp"
#include "worker/delivery_events.hpp"

namespace onced::rehearsal {
namespace {

Json measure(const std::string &name, const Json &value, const std::string &unit, const Json &numerator,
             const Json &denominator, const std::string &window) {
  return {{"name", name},    {"value", value}, {"unit", unit}, {"numerator", numerator}, {"denominator", denominator},
          {"window", window}};
}

Json ratio(std::uint64_t numerator, std::uint64_t denominator, double factor) {
  if (denominator == 0) return nullptr;
  return factor * static_cast<double>(numerator) / static_cast<double>(denominator);
}

// For each process that was killed, until the first acknowledgement after it.
std::vector<double> recoveries_of(const Json &observed) {
  std::vector<double> times;
  for (const Json &process : observed.at("processes")) {
    if (process.at("end") != "killed by signal 9") continue;
    const std::string killed = process.at("ended_at");
    std::string first; // times of one form compare as texts
    for (const Json &row : observed.at("evidence")) {
      if (row.at("acknowledgement_at").is_null()) continue;
      const std::string at = row.at("acknowledgement_at");
      if (at > killed && (first.empty() || at < first)) first = at;
    }
    if (!first.empty()) times.push_back(static_cast<double>(micros_in(first) - micros_in(killed)) / 1000);
  }
  return times;
}

// Of a log line that says so, the branch; empty: it says no such thing.
std::string branch_in(const Json &log) {
  if (log.is_null()) return "";
  const Json line = parse_json(log.get<std::string>());
  return line.is_object() ? text_in(line, "branch") : "";
}

Json first_found_under_lock(const Json &facts, const Json &observed) {
  for (const Json &row : observed.at("evidence")) {
    if (branch_in(row.at("log")) != worker::key_found_under_lock) continue;
    return {{"scenario", facts.at("name")},
            {"operation_id", row.at("operation_id")},
            {"outcome", row.at("outcome")},
            {"branch", worker::key_found_under_lock}};
  }
  return nullptr;
}

// Those beyond one of each job: at a provider by key, in the store by number.
std::uint64_t double_effects_of(const Json &facts, const Json &observed) {
  const Json &effects = observed.at("effects");
  std::set<std::string> keys;
  for (const Json &effect : effects)
    keys.insert(effect.at("key"));
  if (!effects.empty()) return effects.size() - keys.size();
  const auto seen = facts.at("seen").at("effects").get<std::uint64_t>();
  const auto jobs = facts.at("jobs").get<std::uint64_t>();
  return seen > jobs ? seen - jobs : 0;
}

// What scenarios that were played add up to.
struct Tally {
  std::uint64_t deliveries = 0;
  std::uint64_t answered = 0;
  std::uint64_t accepted = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t double_effects = 0;
  std::uint64_t failures = 0; // of handlers, after which somebody had to find out
  std::uint64_t reconciled = 0;
  std::vector<double> recovery;

  void add(const Json &facts, const Json &observed) {
    const Json &seen = facts.at("seen");
    accepted += seen.at("stored").get<std::uint64_t>() + seen.at("duplicate").get<std::uint64_t>() +
                seen.at("settled").get<std::uint64_t>();
    for (const Json &row : observed.at("evidence")) {
      const Json &answer = row.at("final_outcome").is_null() ? row.at("outcome") : row.at("final_outcome");
      ++deliveries;
      if (!answer.is_null()) ++answered;
      if (answer == "duplicate") ++duplicates;
    }
    double_effects += double_effects_of(facts, observed);
    if (const Json &handled = observed.at("handled"); !handled.is_null()) {
      failures += handled.at("tried_again").get<std::uint64_t>() + handled.at("held").get<std::uint64_t>();
      reconciled += handled.at("reconciled").get<std::uint64_t>() + handled.at("resolved").get<std::uint64_t>();
    }
    const std::vector<double> times = recoveries_of(observed);
    recovery.insert(recovery.end(), times.begin(), times.end());
  }
};

Json first_told_present(const Json &facts) {
  for (const Json &outcome : facts.at("outcomes")) {
    if (outcome.at("outcome") != "duplicate" && outcome.at("outcome") != "conflict") continue;
    return {{"scenario", facts.at("name")},
            {"operation_id", outcome.at("operation_id")},
            {"outcome", outcome.at("outcome")},
            {"branch", nullptr}};
  }
  return nullptr;
}

} // namespace

std::chrono::milliseconds visibility_timeout_of(const WorkerPlan &worker, bool fast) {
  return fast ? worker.visibility_timeout / 5 : worker.visibility_timeout;
}

Json facts_of_plan(const Plan &plan, bool fast) {
  const WorkerPlan &worker = plan.worker;
  const SideEffect &effect = plan.side_effect;
  const bool is_foreign = !worker.command.empty();
  return {
      {"plan",
       {{"name", plan.name}, {"file", plan.file}, {"sha256", hex_sha256(plan.text)}, {"review_by", plan.review_by}}},
      {"seeds",
       {{"file", plan.seeds.file},
        {"sha256", hex_sha256(plan.seeds.text)},
        {"jobs", plan.seeds.lines.size()},
        {"type", plan.seeds.type},
        {"schema", plan.seeds.schema},
        {"conflicting", plan.seeds.conflicting}}},
      {"side_effect",
       {{"name", effect.name},
        {"recorded_in", effect.recorded_in},
        {"owner", effect.owner},
        {"duplicate_accepted_by", effect.duplicate_accepted_by},
        {"reconciliation_owner", effect.reconciliation_owner}}},
      {"worker",
       {{"kind", is_foreign ? "command" : "onced"},
        {"command", null_or(joined(worker.command))},
        {"count", null_or(joined(worker.count))},
        {"kill_when", null_or(worker.kill_when)},
        {"handler", null_or(joined(plan.handler.command))},
        {"reconcile", null_or(joined(plan.handler.reconcile))},
        {"provider", null_or(joined(plan.handler.provider))},
        {"threads", worker.threads},
        {"durability", worker.durability},
        {"retry_policy", worker.retry_policy},
        {"visibility_timeout_ms", visibility_timeout_of(worker, fast).count()}}}};
}

Json counts_of_scenarios(const Json &facts_scenarios) {
  const auto with = [&](const char *status) {
    return static_cast<std::size_t>(std::count_if(facts_scenarios.begin(), facts_scenarios.end(),
                                                  [&](const Json &one) { return one.at("status") == status; }));
  };
  return {{"scenarios", facts_scenarios.size()},
          {"passed", with("passed")},
          {"failed", with("failed")},
          {"skipped", with("skipped")}};
}

std::string verdict_of(const Json &counts) {
  return counts.at("failed") == 0 && counts.at("passed") > 0 ? "passed" : "failed";
}

Json failing_insert_of(const Json &facts_scenarios, const Json &observed_scenarios) {
  for (std::size_t at = 0; at < std::min(facts_scenarios.size(), observed_scenarios.size()); ++at) {
    const Json &facts = facts_scenarios[at];
    const std::string worker = facts.at("worker");
    Json found;
    if (worker == "onced") found = first_found_under_lock(facts, observed_scenarios[at]);
    if (worker == "command") found = first_told_present(facts);
    if (!found.is_null()) return found;
  }
  return nullptr;
}

Json measures_of(const Json &facts_scenarios, const Json &observed_scenarios) {
  const std::string window = "this run, all scenarios that ran";
  Tally tally;
  Tally at_risk;
  for (std::size_t at = 0; at < std::min(facts_scenarios.size(), observed_scenarios.size()); ++at) {
    const Json &facts = facts_scenarios[at];
    if (facts.at("seen").is_null() || facts.at("is_control") == true) continue;
    (facts.at("risk").is_null() ? tally : at_risk).add(facts, observed_scenarios[at]);
  }
  const std::uint64_t failures = tally.failures + at_risk.failures;
  const std::uint64_t reconciled = tally.reconciled + at_risk.reconciled;
  const std::uint64_t duplicates = tally.duplicates + at_risk.duplicates;
  const std::uint64_t answered = tally.answered + at_risk.answered;
  const std::uint64_t deliveries = tally.deliveries + at_risk.deliveries;
  std::vector<double> &recovery = tally.recovery;
  std::sort(recovery.begin(), recovery.end());
  const Json p50 = recovery.empty() ? Json() : Json(recovery[(recovery.size() - 1) / 2]);
  const Json max = recovery.empty() ? Json() : Json(recovery.back());
  return Json::array(
      {measure("duplicate_effects_per_1000_accepted_jobs", ratio(tally.double_effects, tally.accepted, 1000),
               "per 1,000", tally.double_effects, tally.accepted, window + " but those whose policy risks them"),
       measure("reconciled_jobs_per_100_failures", ratio(reconciled, failures, 100), "per 100", reconciled, failures,
               "as each last worker has counted"),
       measure("recovery_p50_ms", p50, "ms", nullptr, recovery.size(), "from each kill to the first acknowledgement"),
       measure("recovery_max_ms", max, "ms", nullptr, recovery.size(), "from each kill to the first acknowledgement"),
       measure("duplicate_rate", ratio(duplicates, answered, 1), "of answered", duplicates, answered,
               window + " but the controls"),
       measure("duplicate_volume", duplicates, "deliveries", duplicates, deliveries, window + " but the controls"),
       measure("double_effects_per_1000_jobs_at_risk", ratio(at_risk.double_effects, at_risk.accepted, 1000),
               "per 1,000", at_risk.double_effects, at_risk.accepted, "the scenarios whose policy risks them")});
}

} // namespace onced::rehearsal
