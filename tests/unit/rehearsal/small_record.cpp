#include "unit/rehearsal/small_record.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"
#include "rehearsal/conclusions.hpp"
#include "rehearsal/effects.hpp"
#include "rehearsal/files.hpp"
#include "rehearsal/scenarios.hpp"
#include "worker/delivery_events.hpp"

namespace onced::rehearsal {

Plan small_plan() {
  Plan plan;
  plan.file = "plan.toml";
  plan.text = R"([plan]
name = "demo"
review_by = 2027-01-31
[side_effect]
name = "a sum"
recorded_in = "operations"
owner = "ledger"
duplicate_accepted_by = "nobody"
reconciliation_owner = "on call"
[seeds]
file = "jobs.jsonl"
type = "sum"
schema = "numbers"
[worker]
retry_policy = "until settled"
visibility_timeout = "1s"
[[scenario]]
name = "sequential"
expected = { effects = 1, stored = 1 }
[[scenario]]
name = "kill after commit"
expected = { effects = 1, duplicate = 1 }
[[scenario]]
name = "redrive"
expected = { effects = 1 }
[[scenario]]
name = "unguarded memory under a kill"
expected = { effects_min = 2 }
)";
  plan.seeds.file = "jobs.jsonl";
  plan.seeds.text = "{\"operation_id\":\"a\"}\n";
  return plan;
}

namespace {

constexpr std::string_view small_facts = R"({
  "verdict": "passed",
  "counts": {"scenarios": 4, "passed": 3, "failed": 0, "skipped": 1},
  "plan": {"name": "demo", "file": "plan.toml", "sha256": "", "review_by": "2027-01-31"},
  "seeds": {"file": "jobs.jsonl", "sha256": "", "jobs": 1, "type": "sum", "schema": "numbers", "conflicting": []},
  "side_effect": {"name": "a sum", "recorded_in": "operations", "owner": "ledger", "duplicate_accepted_by": "nobody",
                  "reconciliation_owner": "on call"},
  "options": {"seed": 1, "fast": true, "only": null},
  "worker": {"kind": "onced", "command": null, "count": null, "kill_when": null, "handler": null,
             "reconcile": null, "provider": null, "threads": 2, "durability": "fsync", "retry_policy": "until settled", "visibility_timeout_ms": 200},
  "constraint": {"key": "k", "digest": "d", "transaction": "t"},
  "failing_insert": {"scenario": "kill after commit", "operation_id": "a", "outcome": "duplicate", "branch": "key found under its lock: nothing put"},
  "scenarios": [
    {"name": "sequential", "title": "once", "worker": "onced", "is_control": false, "risk": null, "status": "passed", "why": null,
     "kill_point": null, "jobs": 1,
     "expected": {"effects": 1, "dead_letters": 0, "late": 0, "stored": 1, "duplicate": 0, "settled": 0, "conflict": 0, "invalid": 0, "failed": 0, "expired": 0},
     "seen": {"effects": 1, "dead_letters": 0, "late": 0, "stored": 1, "duplicate": 0, "settled": 0, "conflict": 0, "invalid": 0, "failed": 0, "expired": 0},
     "differences": [], "effects_before": 0, "effects_after": 1,
     "outcomes": [{"operation_id": "a", "outcome": "stored", "count": 1}]},
    {"name": "kill after commit", "title": "killed", "worker": "onced", "is_control": false, "risk": null, "status": "passed",
     "why": null, "kill_point": "worker.after-commit", "jobs": 1,
     "expected": {"effects": 1, "dead_letters": 0, "late": 0, "stored": 0, "duplicate": 1, "settled": 0, "conflict": 0, "invalid": 0, "failed": 0, "expired": 0},
     "seen": {"effects": 1, "dead_letters": 0, "late": 0, "stored": 0, "duplicate": 1, "settled": 0, "conflict": 0, "invalid": 0, "failed": 0, "expired": 0},
     "differences": [], "effects_before": 0, "effects_after": 1,
     "outcomes": [{"operation_id": "a", "outcome": "duplicate", "count": 1}]},
    {"name": "redrive", "title": "redriven", "worker": "onced", "is_control": false, "risk": null, "status": "skipped",
     "why": "no reason", "kill_point": null, "jobs": 1, "jobs": 1,
     "expected": {"effects": 1, "dead_letters": 0, "late": 0, "stored": 0, "duplicate": 0, "settled": 0, "conflict": 0, "invalid": 0, "failed": 0, "expired": 0},
     "seen": null, "differences": [], "effects_before": null, "effects_after": null, "outcomes": []},
    {"name": "unguarded memory under a kill", "title": "the control", "worker": "unguarded: memory", "is_control": true, "risk": null,
     "status": "passed", "why": null, "kill_point": null, "jobs": 1, "expected": {"effects_min": 2},
     "seen": {"effects": 2, "jobs": 1, "double_effects": 1}, "differences": [], "effects_before": null,
     "effects_after": null, "outcomes": []}],
  "commands": {"verify": "v", "rerun": "r", "review": "w"}, "cannot_reproduce": ["a"], "unproven": ["b"]
})";

// What an observation is before the processes, the timeline and the evidence of its scenarios.
constexpr std::string_view small_observed = R"({
  "started_at": "2026-01-31T12:00:00.000000Z", "ended_at": "2026-01-31T12:00:09.000000Z", "directory": "/record",
  "ran_as": {"user": "root", "uid": 0, "rights": "all"}, "build": {"version": "1"},
  "setting": {"host": "h", "kernel": "k", "cores": 2, "file_system": "ext4", "durability": "fsync"},
  "measures": [], "scenarios": []
})";

// As the worker says it; of one that put a row something to be quoted.
std::string branch_of(const std::string &outcome) {
  return outcome == "stored" || outcome == "accepted" ? "\"quoted\", and more"
                                                      : std::string(worker::key_found_under_lock);
}

} // namespace

std::string at_second(unsigned second) {
  return "2026-01-31T12:00:0" + std::to_string(second) + ".000000Z";
}

Json row_of(const std::string &scenario, unsigned attempt, unsigned published, const Json &outcome) {
  Json log{{"event", "delivery.consumed"}, {"attempt", attempt}};
  if (outcome.is_string()) log = {{"attempt", attempt}, {"outcome", outcome}, {"branch", branch_of(outcome)}};
  return {{"scenario", scenario},
          {"operation_id", "a"},
          {"tag", "00"},
          {"sender", "00"},
          {"sequence", 1},
          {"attempt", attempt},
          {"publish_at", at_second(published)},
          {"consume_at", at_second(published)},
          {"commit_at", outcome == "duplicate" ? Json() : Json(at_second(published + 1))},
          {"commit_shown_by", outcome == "duplicate" ? Json() : Json("{\"row\":1}")},
          {"acknowledgement_at", outcome.is_null() ? Json() : Json(at_second(published + 1))},
          {"rows_before", 0},
          {"rows_written", outcome == "duplicate" ? 0 : 1},
          {"outcome", outcome},
          {"final_outcome", nullptr},
          {"killed", outcome.is_null() ? Json("worker.after-commit") : Json()},
          {"log", log.dump()}};
}

Json entry(const std::string &what, unsigned second, const Json &operation_id, const Json &attempt) {
  constexpr std::uint64_t noon_us = 1'769'860'800'000'000;
  return {{"at", at_second(second)},
          {"at_us", noon_us + second * 1'000'000},
          {"what", what},
          {"operation_id", operation_id},
          {"attempt", attempt},
          {"detail", ""}};
}

Json observed_of(const std::string &scenario, const Json &rows) {
  const auto written =
      std::count_if(rows.begin(), rows.end(), [](const Json &row) { return row["rows_written"] == 1; });
  Json queries = Json::array();
  if (!rows.empty()) {
    queries.push_back(
        {{"command", "onced count"}, {"before", 0}, {"after", static_cast<std::uint64_t>(written)}, {"decides", true}});
  }
  return {{"name", scenario},         {"started_at", at_second(0)},
          {"ended_at", at_second(9)}, {"directory", "/record/one"},
          {"endpoints", nullptr},     {"processes", Json::array()},
          {"queries", queries},       {"timeline", Json::array()},
          {"backlog", Json::array()}, {"effects", Json::array()},
          {"late", Json::array()},    {"handled", nullptr},
          {"events_dropped", 0},      {"evidence", rows}};
}

// A worker that was killed after a commit, and a job that was delivered again.
Json observed_kill(const std::string &scenario, const Json &second_outcome) {
  Json observed =
      observed_of(scenario, Json::array({row_of(scenario, 1, 2, nullptr), row_of(scenario, 2, 5, second_outcome)}));
  observed["evidence"][1]["rows_before"] = 1;
  observed["processes"].push_back({{"role", "worker"},
                                   {"command", "onced serve"},
                                   {"pid", 1},
                                   {"started_at", at_second(1)},
                                   {"ended_at", at_second(4)},
                                   {"end", "killed by signal 9"}});
  observed["timeline"] = {entry("start", 1, nullptr, nullptr), entry("publish", 2, "a", 1), entry("commit", 3, "a", 1),
                          entry("kill", 4, nullptr, nullptr), entry("redelivery", 5, "a", 2)};
  return observed;
}

// A job that was stored, one that was found by its second delivery after a kill, a scenario that was skipped, and a
// control.
Json small_record() {
  const Plan plan = small_plan();
  Json record{{"format", "onced rehearsal"},
              {"version", record_version},
              {"facts", Json::parse(small_facts)},
              {"observed", Json::parse(small_observed)},
              {"reviews", Json::array()}};
  Json &observed = record["observed"];
  observed["scenarios"] = {observed_of("sequential", Json::array({row_of("sequential", 1, 2, "stored")})),
                           observed_kill("kill after commit", "duplicate"), observed_of("redrive", Json::array()),
                           observed_kill("unguarded memory under a kill", "stored")};
  observed["scenarios"][2]["started_at"] = nullptr;
  observed["measures"] = measures_of(record["facts"]["scenarios"], observed["scenarios"]);
  record["facts"]["plan"]["sha256"] = hex_sha256(plan.text);
  record["facts"]["seeds"]["sha256"] = hex_sha256(plan.seeds.text);
  return record;
}

// Of a scenario alone whose job was accepted, had its effect at a provider, and was answered later. Changes the plan to
// one of it.
Json record_of_provider(Plan &plan, const std::string &scenario) {
  Json record = small_record();
  plan.text += "[handler]\ncommand = [\"c\"]\nreconcile = [\"r\"]\nprovider = [\"p\"]\n[[scenario]]\nname = \"" +
               scenario + "\"\nexpected = { effects = 1, settled = 1 }\n";
  Json &facts = record["facts"];
  facts["plan"]["sha256"] = hex_sha256(plan.text);
  facts["options"]["only"] = scenario;
  facts["worker"].update({{"handler", "c"}, {"reconcile", "r"}, {"provider", "p"}});
  facts["failing_insert"] = nullptr;
  facts["counts"] = {{"scenarios", 1}, {"passed", 1}, {"failed", 0}, {"skipped", 0}};
  Json facts_one = facts["scenarios"][0];
  facts_one.update({{"name", scenario}, {"risk", null_or(find_scenario(scenario)->risk)}});
  for (const char *counts : {"expected", "seen"})
    facts_one[counts].update({{"stored", 0}, {"settled", 1}});
  facts_one["outcomes"][0]["outcome"] = "settled";
  facts["scenarios"] = Json::array({facts_one});
  Json row = row_of(scenario, 1, 2, "accepted");
  row["final_outcome"] = "stored";
  Json observed = observed_of(scenario, Json::array({row}));
  observed["effects"] = Json::array(
      {{{"at", at_second(2)}, {"operation_id", "a"}, {"key", idempotency_key_of(plan.seeds.text)}, {"token", "1f"}}});
  observed["timeline"] = Json::array({entry("effect", 2, "a", nullptr)});
  record["observed"]["scenarios"] = Json::array({observed});
  record["observed"]["measures"] = measures_of(facts["scenarios"], record["observed"]["scenarios"]);
  return record;
}

// The problems of a record that was written whole, a line each.
std::string problems_of(const Json &record, const Plan &plan) {
  const ScratchDirectory directory;
  REQUIRE(write_record(directory.path(), record, plan));
  const auto problems = verify_record(directory.path());
  REQUIRE(problems);
  std::string text;
  for (const std::string &problem : *problems)
    text += problem + "\n";
  return text;
}

} // namespace onced::rehearsal
