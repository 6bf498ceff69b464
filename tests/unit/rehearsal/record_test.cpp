// A record's files: that an edit which makes them inconsistent is found and named, and that facts are compared. Not
// that a rehearsal writes a true record: that is the demo's.
#include "rehearsal/record.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"
#include "rehearsal/conclusions.hpp"
#include "rehearsal/effects.hpp"
#include "rehearsal/files.hpp"
#include "rehearsal/limits.hpp"
#include "rehearsal/record_form.hpp"
#include "rehearsal/scenarios.hpp"
#include "worker/delivery_events.hpp"

namespace onced::rehearsal {
namespace {

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

std::string at_second(unsigned second) {
  return "2026-01-31T12:00:0" + std::to_string(second) + ".000000Z";
}

// As the worker says it; of one that put a row something to be quoted.
std::string branch_of(const std::string &outcome) {
  return outcome == "stored" || outcome == "accepted" ? "\"quoted\", and more"
                                                      : std::string(worker::key_found_under_lock);
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
std::string problems_of(const Json &record, const Plan &plan = small_plan()) {
  const ScratchDirectory directory;
  REQUIRE(write_record(directory.path(), record, plan));
  const auto problems = verify_record(directory.path());
  REQUIRE(problems);
  std::string text;
  for (const std::string &problem : *problems)
    text += problem + "\n";
  return text;
}

std::string problems_after(const std::string &pointer, const Json &value) {
  Json record = small_record();
  record.at(Json::json_pointer(pointer)) = value;
  return problems_of(record);
}

// Of a record.json alone, which is all that is looked at where it is not of its form.
std::string problem_of_form(const Json &record) {
  const ScratchDirectory directory;
  std::ofstream(directory.path() / "record.json") << record;
  const auto problems = verify_record(directory.path());
  REQUIRE(problems);
  REQUIRE(!problems->empty());
  return problems->front();
}

std::string problem_of_form_without(const std::string &pointer, const std::string &key) {
  Json record = small_record();
  record.at(Json::json_pointer(pointer)).erase(key);
  return problem_of_form(record);
}

std::string problem_of_form_after(const std::string &pointer, const Json &value) {
  Json record = small_record();
  record[Json::json_pointer(pointer)] = value;
  return problem_of_form(record);
}

// An edit of a value, and the beginning of a problem that must name its place.
struct Edit {
  std::string pointer;
  Json value;
  std::string problem;
};

void check_all(const std::vector<Edit> &edits) {
  for (const Edit &edit : edits) {
    const std::string problems = "\n" + problems_after(edit.pointer, edit.value);
    CHECK_MESSAGE(problems.find("\n" + edit.problem) != std::string::npos, edit.pointer, ":", problems);
  }
}

const std::string kill_facts = "/facts/scenarios/1";
const std::string control_facts = "/facts/scenarios/3";
const std::string kill_rows = "/observed/scenarios/1/evidence/";
const std::string control_rows = "/observed/scenarios/3/evidence/";

} // namespace

TEST_CASE("a record whose parts belong together has no problem") {
  CHECK(problems_of(small_record()).empty());
}

TEST_CASE("the record that the page is tested with is of the form") {
  const auto sample = read_file(std::filesystem::path(ONCED_TESTS_DIR) / "rehearsal" / "sample_record.json", 1'000'000);
  REQUIRE(sample);
  CHECK(problems_of_form(parse_json(*sample)) == std::vector<std::string>());
}

TEST_CASE("verdict and counts follow from the scenarios") {
  check_all({{"/facts/verdict", "failed", "verdict: "},
             {"/facts/counts/scenarios", 5, "counts: scenarios "},
             {"/observed/scenarios", Json::array(), "facts and observed have different numbers of scenarios"},
             {"/facts/counts/passed", 4, "counts: passed "},
             {"/facts/counts/failed", 1, "counts: failed "},
             {"/facts/counts/skipped", 0, "counts: skipped "}});
}

TEST_CASE("a status follows from what was expected and seen") {
  check_all(
      {{"/facts/scenarios/0/status", "failed", "sequential: status "},
       {"/facts/scenarios/0/status", "skipped", "sequential: status "},
       {"/facts/scenarios/0/why", "for no reason", "sequential: status "},
       {"/facts/scenarios/0/seen", nullptr, "sequential: seen is null, and there is no why"},
       {"/facts/scenarios/0/differences", Json::array({"effects: expected 1, seen 2"}), "sequential: differences "},
       {"/facts/scenarios/2/status", "passed", "redrive: status "},
       {"/facts/scenarios/2/why", nullptr, "redrive: seen is null, and there is no why"},
       {"/facts/scenarios/2/effects_after", 1, "redrive: nothing was seen, and yet effects were counted"},
       {"/observed/scenarios/2/evidence", Json::array({row_of("redrive", 1, 2, "stored")}),
        "redrive: nothing was seen, and yet there is evidence"},
       {"/observed/scenarios/2/started_at", at_second(1), "redrive: status "}});
}

TEST_CASE("a scenario that failed says all of its differences") {
  Json record = small_record();
  Json &facts = record["facts"]["scenarios"][0];
  facts["seen"]["dead_letters"] = 2;
  facts["status"] = "failed";
  facts["differences"] = {"dead_letters: expected 0, seen 2"};
  record["facts"]["verdict"] = "failed";
  record["facts"]["counts"] = {{"scenarios", 4}, {"passed", 2}, {"failed", 1}, {"skipped", 1}};
  CHECK(problems_of(record).empty());
  facts["differences"] = {"dead_letters: expected 0, seen 1"};
  CHECK(problems_of(record) == "sequential: differences do not follow from expected and seen\n");
}

TEST_CASE("what was expected and which scenarios there are is in the plan") {
  check_all({{"/facts/scenarios/0/expected/stored", 2, "sequential: expected is not what plan.toml says"},
             {control_facts + "/expected/effects_min", 1, "unguarded memory under a kill: expected is not what "},
             {"/facts/scenarios/0/name", "poison", "scenarios: are not those of plan.toml in its order"},
             {"/facts/options/only", "redrive", "scenarios: are not those of plan.toml in its order"},
             {"/facts/options/fast", false, "worker.visibility_timeout_ms: is not what plan.toml says"},
             {"/facts/plan/review_by", "2037-01-31", "plan.review_by: "},
             {"/facts/side_effect/owner", "someone", "side_effect.owner: "},
             {"/facts/seeds/jobs", 2, "seeds.jobs: "},
             {"/facts/worker/kind", "command", "worker.kind: "},
             {"/facts/worker/durability", "page-cache", "worker.durability: "}});
}

TEST_CASE("a record of one scenario of the plan has no problem") {
  Json record = small_record();
  Json &facts = record["facts"];
  facts["options"]["only"] = "sequential";
  facts["counts"] = {{"scenarios", 1}, {"passed", 1}, {"failed", 0}, {"skipped", 0}};
  facts["failing_insert"] = nullptr;
  facts["scenarios"] = Json::array({facts["scenarios"][0]});
  record["observed"]["scenarios"] = Json::array({record["observed"]["scenarios"][0]});
  record["observed"]["measures"] = measures_of(facts["scenarios"], record["observed"]["scenarios"]);
  CHECK(problems_of(record).empty());
}

TEST_CASE("what was seen follows from outcomes and counts and evidence") {
  check_all(
      {{"/facts/scenarios/0/seen/effects", 2, "sequential: seen.effects does not follow from effects_before "},
       {"/facts/scenarios/0/seen/effects", 2, "sequential: seen.effects does not follow from the rows written "},
       {"/facts/scenarios/0/seen/stored", 2, "sequential: seen.stored: "},
       {"/facts/scenarios/0/effects_before", 1, "sequential: seen.effects does not follow from effects_before "},
       {"/facts/scenarios/0/effects_after", nullptr, "sequential: seen.effects does not follow from effects_before "},
       {"/facts/scenarios/0/outcomes/0/count", 2, "sequential: outcomes: a was told \"stored\" 2 times, by 1 "},
       {"/facts/scenarios/0/outcomes", Json::array(), "sequential: outcomes: a was told \"stored\" 0 times, by 1 "},
       {kill_facts + "/outcomes/0/operation_id", "b",
        "kill after commit: outcomes: b was told \"duplicate\" 1 times, by 0 "},
       {kill_rows + "1/acknowledgement_at", nullptr,
        "kill after commit: outcomes: a was told \"duplicate\" 1 times, by 0 "}});
}

TEST_CASE("rows of evidence hold together and go with their log") {
  check_all(
      {{kill_rows + "0/scenario", "sequential", "kill after commit: evidence[0].scenario: "},
       {kill_rows + "0/rows_written", 0, "kill after commit: evidence[0].rows_written: does not follow "},
       {kill_rows + "1/rows_written", 1, "kill after commit: evidence[1].rows_written: does not follow "},
       {kill_rows + "1/rows_written", 2, "kill after commit: evidence[1].rows_written: is neither "},
       {kill_rows + "0/commit_at", nullptr, "kill after commit: evidence[0].rows_written: does not follow "},
       {kill_rows + "1/commit_at", at_second(6), "kill after commit: evidence[1].outcome: is not that of a commit"},
       {kill_rows + "0/acknowledgement_at", at_second(6), "kill after commit: evidence[0].outcome: null was "},
       {kill_rows + "0/killed", "worker.before-commit", "kill after commit: evidence[0].killed: "},
       {kill_rows + "1/outcome", "conflict", "kill after commit: evidence[1].outcome: is not that of its log"},
       {kill_rows + "1/attempt", 3, "kill after commit: evidence[1].attempt: is not that of its log"},
       {kill_rows + "1/log", nullptr, "kill after commit: evidence[1].log: does not go with "},
       {kill_rows + "1/log", "no event", "kill after commit: evidence[1].log: is no event"},
       {kill_rows + "0/operation_id", "b", "kill after commit: evidence: b is none of the seeds"},
       {"/observed/scenarios/0/evidence/0/commit_at", nullptr, "sequential: evidence[0].commit_at: null was stored"},
       {"/observed/scenarios/0/name", "poison", "sequential: observed under another name"}});
}

TEST_CASE("a job that was made of a seed is one of the seeds") {
  Json record = small_record();
  record["facts"]["scenarios"][0]["outcomes"][0]["operation_id"] = "a#1";
  record["observed"]["scenarios"][0]["evidence"][0]["operation_id"] = "a#1";
  CHECK(problems_of(record).empty());
}

TEST_CASE("what a control has shown follows from its effects") {
  const std::string name = "unguarded memory under a kill: ";
  check_all({{control_facts + "/status", "failed", name + "status "},
             {control_facts + "/seen/effects", 1, name + "seen.double_effects "},
             {control_facts + "/seen/effects", 1, name + "status "},
             {control_facts + "/seen/effects", 3, name + "seen.effects are more than a control tells"},
             {control_facts + "/seen/effects", 3, name + "seen.effects does not follow from the rows written "},
             {control_facts + "/seen/double_effects", 2, name + "seen.double_effects "},
             {control_facts + "/seen/jobs", 2, name + "seen.jobs are not the seeds"},
             {control_facts + "/seen/jobs", 2, name + "seen.double_effects "},
             {control_facts + "/differences", {"effects: fewer"}, name + "differences "},
             {control_facts + "/outcomes",
              {{{"operation_id", "a"}, {"outcome", "stored"}, {"count", 1}}},
              name + "outcomes "},
             {control_facts + "/effects_after", 2, name + "effects_before and effects_after "},
             {control_facts + "/worker", "onced", name + "worker "},
             {control_rows + "0/rows_written", nullptr, name + "seen.effects does not follow from the rows written "}});
}

TEST_CASE("a timeline tells the times of the evidence and of the processes") {
  const std::string line = "/observed/scenarios/1/timeline/";
  const std::string name = "kill after commit: timeline";
  check_all({{line + "0/what", "end", name + "[0]: end is not a time "},
             {line + "2/what", "acknowledgement", name + "[2]: acknowledgement is not a time "},
             {line + "2/attempt", 2, name + "[2]: commit is not a time "},
             {line + "2/operation_id", "b", name + "[2]: commit is not a time "},
             {line + "3/at", at_second(5), name + "[3].at: "},
             {line + "3/at_us", 5, name + "[3]: is older than "},
             {line + "3/what", "start", name + ": its kills "},
             {"/observed/scenarios/1/timeline", Json::array(), name + ": its kills "},
             {"/observed/scenarios/1/processes/0/end", "exit 0", name + ": its kills "}});
}

TEST_CASE("the failing insert and the measures follow from the scenarios") {
  check_all({{"/facts/failing_insert", nullptr, "failing_insert: "},
             {"/facts/failing_insert/operation_id", "b", "failing_insert: "},
             {"/facts/failing_insert/branch", "another", "failing_insert: "},
             {"/observed/measures/0/value", 1, "measures: duplicate_effects_per_1000_accepted_jobs "},
             {"/observed/measures/2/value", 1, "measures: recovery_p50_ms "},
             {"/observed/measures/5/denominator", 1, "measures: duplicate_volume "},
             {"/observed/measures", Json::array(), "measures: are not those that there are"}});
}

TEST_CASE("a delivery that found its key by a look-up alone is no failing insert") {
  Json record = small_record();
  const Json log{{"attempt", 2}, {"outcome", "duplicate"}, {"branch", "key found by the look-up"}};
  record["observed"]["scenarios"][1]["evidence"][1]["log"] = log.dump();
  CHECK(problems_of(record).find("failing_insert: ") != std::string::npos);
  record["facts"]["failing_insert"] = nullptr;
  CHECK(problems_of(record).find("failing_insert: ") == std::string::npos);
}

TEST_CASE("effects at a provider are those of the jobs and are held to what was seen") {
  Plan plan = small_plan();
  Json record = record_of_provider(plan, "response lost after the effect");
  CHECK(problems_of(record, plan) == "");
  const std::string name = "response lost after the effect: ";
  const std::string place = "/observed/scenarios/0/";
  const std::string key = idempotency_key_of(plan.seeds.text);
  const std::vector<Edit> edits{
      {place + "effects", Json::array(), name + "seen.effects does not follow from the effects at the provider"},
      {place + "effects/0/key", key + "0", name + "effects[0]: is none of a job of the seeds"},
      {place + "effects/0/operation_id", "b", name + "effects[0]: is none of a job of the seeds"},
      {place + "effects/0/at", at_second(8), name + "timeline[0]: effect is not a time "},
      {place + "late",
       {{{"at", at_second(1)}, {"operation_id", "a"}, {"receive", 1}, {"token", "1f"}}},
       name + "seen.late does not follow "},
      {place + "evidence/0/final_outcome", nullptr, name + "evidence[0].final_outcome: does not go with "},
      {place + "evidence/0/final_outcome", "failed", name + "outcomes: a was told \"failed\" 0 times"},
      {place + "evidence/0/commit_at", nullptr, name + "evidence[0].rows_written: does not follow "},
      {"/facts/scenarios/0/risk", "none", name + "risk is not that of the scenario"}};
  for (const Edit &edit : edits) {
    Json edited = record;
    edited.at(Json::json_pointer(edit.pointer)) = edit.value;
    const std::string problems = "\n" + problems_of(edited, plan);
    CHECK_MESSAGE(problems.find("\n" + edit.problem) != std::string::npos, edit.pointer, ":", problems);
  }
}

TEST_CASE("a row that was written and that nobody was told of is found where the effects are at a provider") {
  Plan plan = small_plan();
  Json record = record_of_provider(plan, "response lost after the effect");
  Json &row = record["observed"]["scenarios"][0]["evidence"][0];
  row["commit_at"] = nullptr;
  row["rows_written"] = 0;
  CHECK(problems_of(record, plan).find("outcomes do not follow from the rows written") != std::string::npos);
}

TEST_CASE("what was reconciled is measured by what the worker has counted") {
  Plan plan = small_plan();
  Json record = record_of_provider(plan, "not idempotent, query");
  Json &observed = record["observed"]["scenarios"];
  observed[0]["handled"] = {{"receives", 2}, {"handled", 1},    {"tried_again", 3}, {"held", 1},
                            {"late", 0},     {"reconciled", 2}, {"resolved", 1}};
  const Json measure = measures_of(record["facts"]["scenarios"], observed)[1];
  CHECK(measure["value"] == 75);
  CHECK(measure["denominator"] == 4);
  CHECK(problems_of(record, plan).find("measures: reconciled_jobs_per_100_failures ") == 0);
}

TEST_CASE("double effects are counted by key and those of a risk apart") {
  Plan plan = small_plan();
  for (const std::string name : {"response lost after the effect", "not idempotent, retry"}) {
    Json record = record_of_provider(plan, name);
    Json &observed = record["observed"]["scenarios"];
    observed[0]["effects"].push_back(observed[0]["effects"][0]);
    const Json measures = measures_of(record["facts"]["scenarios"], observed);
    const bool is_risk = name == "not idempotent, retry";
    CHECK(measures[0]["numerator"] == (is_risk ? 0 : 1));
    CHECK(measures[6]["name"] == "double_effects_per_1000_jobs_at_risk");
    CHECK(measures[6]["numerator"] == (is_risk ? 1 : 0));
    CHECK(measures[6]["denominator"] == (is_risk ? 1 : 0));
  }
}

TEST_CASE("an outcome that no one was told is a problem") {
  const Json none{{"operation_id", "a"}, {"outcome", "failed"}, {"count", 0}};
  Json record = small_record();
  record["facts"]["scenarios"][0]["outcomes"].push_back(none);
  CHECK(problems_of(record).find("sequential: outcomes: a was told \"failed\" 0 times") == 0);
}

TEST_CASE("a control without a double effect has failed whatever its plan asks for") {
  Plan plan = small_plan();
  plan.text.replace(plan.text.find("effects_min = 2"), 15, "effects_min = 1");
  Json record = small_record();
  record["facts"]["plan"]["sha256"] = hex_sha256(plan.text);
  Json &control = record["facts"]["scenarios"][3];
  control["expected"]["effects_min"] = 1;
  control["seen"] = {{"effects", 1}, {"jobs", 1}, {"double_effects", 0}};
  CHECK(problems_of(record, plan).find("unguarded memory under a kill: status ") == 0);
}

TEST_CASE("evidence of someone else's worker is only held to its effects where it passed") {
  Plan plan = small_plan();
  plan.text += "[[scenario]]\nname = \"poison\"\nexpected = { effects = 1, stored = 1 }\n";
  plan.text.replace(plan.text.find("[worker]\n"), 9, "[worker]\ncommand = [\"w\"]\ncount = [\"c\"]\n");
  Json record = small_record();
  Json &facts = record["facts"];
  facts["plan"]["sha256"] = hex_sha256(plan.text);
  facts["options"]["only"] = "poison";
  facts["worker"].update({{"kind", "command"}, {"command", "w"}, {"count", "c"}});
  facts["failing_insert"] = nullptr;
  facts["verdict"] = "failed";
  facts["counts"] = {{"scenarios", 1}, {"passed", 0}, {"failed", 1}, {"skipped", 0}};
  Json scenario = facts["scenarios"][0];
  scenario.update({{"name", "poison"}, {"worker", "command"}, {"status", "failed"}, {"effects_after", 2}});
  scenario["seen"]["effects"] = 2;
  scenario["differences"] = Json::array({"effects: expected 1, seen 2"});
  facts["scenarios"] = Json::array({scenario});
  Json &observed = record["observed"];
  observed["scenarios"] = Json::array({observed_of("poison", Json::array({row_of("poison", 1, 2, "stored")}))});
  observed["scenarios"][0]["queries"][0]["after"] = 2;
  observed["measures"] = measures_of(facts["scenarios"], observed["scenarios"]);
  CHECK(problems_of(record, plan).empty());
}

TEST_CASE("a key that is missing or unknown is named") {
  CHECK(problem_of_form_without("", "observed") == "observed: is missing");
  CHECK(problem_of_form_without("/facts", "constraint") == "facts.constraint: is missing");
  CHECK(problem_of_form_without("/facts/scenarios/1", "seen") == "facts.scenarios[1].seen: is missing");
  CHECK(problem_of_form_without("/facts/scenarios/1/seen", "stored") == "facts.scenarios[1].seen.stored: is missing");
  CHECK(problem_of_form_without("/observed/scenarios/1/evidence/0", "log") ==
        "observed.scenarios[1].evidence[0].log: is missing");
  CHECK(problem_of_form_after("/facts/constraint", {{"key", "k"}}) == "facts.constraint.digest: is missing");
  CHECK(problem_of_form_after(control_facts + "/expected/effects", 2) ==
        "facts.scenarios[3].expected.effects: there is no such key");
  CHECK(problem_of_form_after("/more", 1) == "more: there is no such key");
}

TEST_CASE("a value of another type is named") {
  CHECK(problem_of_form_after("/facts", 1) == "facts: is no object");
  CHECK(problem_of_form_after("/facts/verdict", nullptr) == "facts.verdict: is no text");
  CHECK(problem_of_form_after("/facts/scenarios", nullptr) == "facts.scenarios: is no list");
  CHECK(problem_of_form_after("/facts/scenarios/0/is_control", 0) == "facts.scenarios[0].is_control: is no flag");
  CHECK(problem_of_form_after("/facts/scenarios/0/effects_after", -1) ==
        "facts.scenarios[0].effects_after: is no count");
  CHECK(problem_of_form_after("/facts/scenarios/0/seen/effects", 1.0) ==
        "facts.scenarios[0].seen.effects: is no count");
  CHECK(problem_of_form_after("/observed/measures/0/value", "0") == "observed.measures[0].value: is no number");
  for (const std::string wrong : {"2026-01-31 12:00:00.000000", "2026-01-31T12:00:00.00000aZ", "2026-01-31T12:00:00Z"})
    CHECK(problem_of_form_after("/observed/started_at", wrong) == "observed.started_at: is no time");
}

TEST_CASE("a file of a record that was edited by itself is found") {
  for (const std::string name : {"plan.toml", "jobs.jsonl", "evidence.csv", "record.html"}) {
    const ScratchDirectory directory;
    REQUIRE(write_record(directory.path(), small_record(), small_plan()));
    std::ofstream(directory.path() / name, std::ios::app) << " ";
    const auto problems = verify_record(directory.path());
    REQUIRE(problems);
    REQUIRE_MESSAGE(problems->size() == 1, name);
    CHECK(problems->front().find(name + ": ") == 0);
  }
}

TEST_CASE("a plan or a seed file in a record that cannot be read is a problem") {
  Plan plan = small_plan();
  plan.text = "[plan\n";
  Json record = small_record();
  record["facts"]["plan"]["sha256"] = hex_sha256(plan.text);
  CHECK(problems_of(record, plan).find("plan.toml:1: not TOML") == 0);
  plan = small_plan();
  plan.seeds.text = "no job\n";
  record = small_record();
  record["facts"]["seeds"]["sha256"] = hex_sha256(plan.seeds.text);
  CHECK(problems_of(record, plan).find("jobs.jsonl:1: no job") == 0);
}

TEST_CASE("a directory without a record and a record of another version are refused") {
  const ScratchDirectory directory;
  CHECK(verify_record(directory.path()).error().code == ErrorCode::not_found);
  Json record = small_record();
  record["version"] = record_version + 1;
  REQUIRE(write_record(directory.path(), record, small_plan()));
  CHECK(verify_record(directory.path()).error().code == ErrorCode::newer_format);
  record["version"] = 2;
  record["observed"]["build"] = {{"version", "0.1.0"}, {"commit", "abc"}};
  REQUIRE(write_record(directory.path(), record, small_plan()));
  const std::string told = describe(verify_record(directory.path()).error());
  CHECK(told.find("its form is version 2, and this onced reads version 3; verify it with the onced that wrote it, "
                  "version \"0.1.0\", commit \"abc\", or rehearse its plan.toml again") != std::string::npos);
  std::filesystem::remove(directory.path() / "record.json");
  std::filesystem::create_directory(directory.path() / "record.json");
  CHECK(verify_record(directory.path()).error().code == ErrorCode::not_found);
}

TEST_CASE("what is no record is refused whatever its values are") {
  const ScratchDirectory directory;
  for (const std::string text : {"", "[]", "{}", "{\"format\": 5, \"version\": 1}", "{\"format\": \"another\"}"}) {
    std::ofstream(directory.path() / "record.json") << text;
    CHECK_MESSAGE(verify_record(directory.path()).error().code == ErrorCode::corrupt, text);
  }
  std::ofstream(directory.path() / "record.json") << R"({"format": "onced rehearsal", "version": "1"})";
  CHECK(verify_record(directory.path()).error().code == ErrorCode::newer_format);
}

TEST_CASE("what was there before a delivery and what shows a commit follow from the commits") {
  check_all(
      {{kill_rows + "1/rows_before", 0, "kill after commit: evidence[1].rows_before: does not follow "},
       {kill_rows + "0/rows_before", 1, "kill after commit: evidence[0].rows_before: does not follow "},
       {kill_rows + "0/commit_shown_by", nullptr, "kill after commit: evidence[0].commit_shown_by: "},
       {kill_rows + "1/commit_shown_by", "a row", "kill after commit: evidence[1].commit_shown_by: "},
       {kill_rows + "0/log", R"({"event":"delivery.settled"})", "kill after commit: evidence[0].log: does not go "},
       {kill_facts + "/jobs", 2, "kill after commit: jobs are not those of the seeds"}});
}

TEST_CASE("one count decides and the effects are those that it has counted") {
  const std::string queries = "/observed/scenarios/0/queries";
  check_all(
      {{queries + "/0/after", 2, "sequential: effects_before and effects_after are not those of the count "},
       {queries + "/0/after", nullptr, "sequential: queries: the one that decides has counted nothing"},
       {queries + "/0/before", 2, "sequential: queries: the one that decides has counted nothing"},
       {queries + "/0/decides", false, "sequential: queries: not one of them decides"},
       {queries, Json::array(), "sequential: queries: there is none"},
       {"/observed/scenarios/3/queries/0/after", 1, "unguarded memory under a kill: seen.effects are more than "}});
}

TEST_CASE("a scenario of which events were dropped has failed") {
  check_all({{"/observed/scenarios/0/events_dropped", 3, "sequential: status: events were dropped"}});
}

TEST_CASE("deliveries that were answered duplicate are measured by the rows that say so") {
  const Json record = small_record();
  const Json measures = measures_of(record["facts"]["scenarios"], record["observed"]["scenarios"]);
  CHECK(measures[4]["name"] == "duplicate_rate");
  CHECK(measures[4]["numerator"] == 1);
  CHECK(measures[4]["denominator"] == 2); // the killed delivery was not answered
  CHECK(measures[5]["numerator"] == 1);
  CHECK(measures[5]["denominator"] == 3); // without the control
}

TEST_CASE("a review seals the record as it was and an edit of either is found") {
  const ScratchDirectory directory;
  REQUIRE(write_record(directory.path(), small_record(), small_plan()));
  const std::string before = *sha256_of_record(directory.path());
  SystemClock clock;
  const auto first = add_review(directory.path(), {.by = "Kim", .decision = "rejected", .note = "too few jobs"}, clock);
  REQUIRE(first);
  CHECK((*first)["sha256"] == before);
  const std::string between = *sha256_of_record(directory.path());
  const auto second = add_review(directory.path(), {.by = "Lou", .decision = "accepted", .note = ""}, clock);
  REQUIRE(second);
  CHECK((*second)["sha256"] == between);
  CHECK(verify_record(directory.path())->empty());
  const Json record = *read_record(directory.path());
  CHECK(record["reviews"].size() == 2);
  CHECK(record["reviews"][0]["by"] == "Kim");
  for (const auto &[pointer, value, problem] :
       std::vector<Edit>{{"/reviews/0/decision", "accepted", "reviews[1].sha256: is not that of the record "},
                         {"/observed/directory", "/another", "reviews[0].sha256: is not that of the record "},
                         {"/reviews/1/decision", "perhaps", "reviews[1].decision: is neither "},
                         {"/reviews/1/at", at_second(0), "reviews[1].at: is older "}}) {
    Json edited = record;
    edited.at(Json::json_pointer(pointer)) = value;
    const std::string problems = "\n" + problems_of(edited);
    const std::string at = pointer + ":" + problems;
    CHECK_MESSAGE(problems.find("\n" + problem) != std::string::npos, at);
  }
}

TEST_CASE("a review without a name or a decision or a reason is refused and no link of the record is followed") {
  const ScratchDirectory directory;
  REQUIRE(write_record(directory.path(), small_record(), small_plan()));
  const std::string before = *sha256_of_record(directory.path());
  SystemClock clock;
  for (const Review &review :
       {Review{"", "accepted", ""}, Review{"Kim", "", ""}, Review{"Kim", "yes", ""}, Review{"Kim", "rejected", ""},
        Review{"K\nim", "accepted", ""}, Review{"Kim", "accepted", std::string(review_note_bytes_max + 1, 'a')}}) {
    const auto added = add_review(directory.path(), review, clock);
    REQUIRE_FALSE(added);
    CHECK(added.error().code == ErrorCode::usage);
    CHECK(*sha256_of_record(directory.path()) == before);
  }
  std::filesystem::create_symlink(directory.path() / "jobs.jsonl", directory.path() / "record.json.new");
  CHECK(add_review(directory.path(), {"Kim", "accepted", ""}, clock));
  CHECK(*sha256_of_record(directory.path()) != before);
  CHECK(verify_record(directory.path())->empty()); // the seeds among it, to which the link led
  const std::string reviewed = *sha256_of_record(directory.path());
  std::ofstream(directory.path() / "evidence.csv", std::ios::app) << " ";
  CHECK(add_review(directory.path(), {"Kim", "accepted", ""}, clock).error().code == ErrorCode::corrupt);
  CHECK(*sha256_of_record(directory.path()) == reviewed);
}

TEST_CASE("a record with more bytes or values or entries than may be read is refused") {
  const ScratchDirectory directory;
  std::string text = R"({"format": "onced rehearsal", "build": [0)";
  while (text.size() < 2 * json_values_max + 100)
    text += ",0";
  std::ofstream(directory.path() / "record.json") << text << "]}";
  CHECK(verify_record(directory.path()).error().cause.find("more values than a record may") != std::string::npos);
  std::ofstream(directory.path() / "record.json") << std::string(record_bytes_max + 1, ' ');
  CHECK(verify_record(directory.path()).error().cause.find("it is larger than") == 0);
  Json record = small_record();
  const Json start = entry("start", 1, nullptr, nullptr);
  record["observed"]["scenarios"][1]["timeline"] = std::vector<Json>(timeline_entries_max + 1, start);
  CHECK(problem_of_form(record).find("observed.scenarios[1].timeline: has more than 1000 entries") == 0);
}

TEST_CASE("cells of the evidence are quoted and none begins a formula") {
  const ScratchDirectory directory;
  Json record = small_record();
  record["observed"]["scenarios"][0]["evidence"][0]["operation_id"] = "=a";
  REQUIRE(write_record(directory.path(), record, small_plan()));
  const auto text = read_file(directory.path() / "evidence.csv", 1'000'000);
  REQUIRE(text);
  CHECK(text->find("scenario,operation_id,tag,") == 0);
  CHECK(text->find("\nsequential,'=a,00,") != std::string::npos);
  CHECK(text->find(",1,stored,,,\"{\"\"attempt\"\":1,") != std::string::npos);
}

TEST_CASE("facts that differ are named and what was observed is not compared") {
  const Json before = small_record();
  Json now = before;
  now["observed"]["scenarios"][0]["evidence"] = Json::array();
  CHECK(compare_facts(before, now).empty());
  now["facts"]["scenarios"][0]["seen"]["stored"] = 2;
  CHECK(compare_facts(before, now) == std::vector<std::string>{"scenarios[0].seen.stored: 1, now 2"});
  now = before;
  now["facts"]["options"]["more"] = 1;
  CHECK(compare_facts(before, now) == std::vector<std::string>{"options.more: null, now 1"});
  CHECK(compare_facts(now, before) == std::vector<std::string>{"options.more: 1, now null"});
}

} // namespace onced::rehearsal
