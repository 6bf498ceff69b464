// That an edit of a record which makes its parts inconsistent is found and named. Not that a rehearsal writes a true
// record: that is the demo's.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"
#include "rehearsal/conclusions.hpp"
#include "rehearsal/effects.hpp"
#include "rehearsal/files.hpp"
#include "rehearsal/limits.hpp"
#include "rehearsal/record.hpp"
#include "rehearsal/record_form.hpp"
#include "rehearsal/scenarios.hpp"
#include "unit/rehearsal/small_record.hpp"
#include "worker/delivery_events.hpp"

namespace onced::rehearsal {
namespace {

std::string problems_after(const std::string &pointer, const Json &value) {
  Json record = small_record();
  record.at(Json::json_pointer(pointer)) = value;
  return problems_of(record);
}

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

} // namespace onced::rehearsal
