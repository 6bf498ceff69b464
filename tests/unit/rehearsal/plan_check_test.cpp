// What of a plan is refused before anything is started: what no run of it can give. Not that a plan which is let
// through comes out.
#include "rehearsal/plan_check.hpp"

#include <string>

#include <doctest/doctest.h>

#include "rehearsal/scenarios.hpp"
#include "rehearsal/toml_depth.hpp"

namespace onced::rehearsal {
namespace {

constexpr std::string_view plan_head = R"([plan]
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
schema = "numbers"
)";
constexpr std::string_view onced_itself =
    "type = \"sum\"\n[worker]\nretry_policy = \"r\"\nvisibility_timeout = \"1s\"\n";
constexpr std::string_view charged = R"(type = "charge"
[worker]
retry_policy = "r"
visibility_timeout = "1s"
[handler]
command = ["true"]
reconcile = ["true"]
provider = ["true"]
)";
constexpr std::string_view of_another = R"(type = "sum"
[worker]
retry_policy = "r"
visibility_timeout = "1s"
command = ["true"]
count = ["true"]
)";
constexpr std::string_view two_sums =
    "{\"operation_id\":\"a\",\"numbers\":[1]}\n{\"operation_id\":\"b\",\"numbers\":[]}\n";
constexpr std::string_view two_charges =
    "{\"operation_id\":\"a\",\"type\":\"charge\"}\n{\"operation_id\":\"b\",\"type\":\"charge\"}\n";

// Why a plan of one scenario is refused; empty: it is not.
std::string check_refusal_of(std::string_view worker, std::string_view seeds, const std::string &scenario,
                             const std::string &expected, unsigned copies = 2) {
  const std::string text = std::string(plan_head) + std::string(worker) + "[[scenario]]\nname = \"" + scenario +
                           "\"\ncopies = " + std::to_string(copies) + "\nexpected = { " + expected + " }\n";
  auto plan = parse_plan(text, "plan.toml", scenario_names());
  REQUIRE_MESSAGE(plan, text);
  const auto parsed = parse_seeds(seeds, plan->seeds);
  REQUIRE(parsed);
  const auto checked = check_plan(*plan, plan->scenarios);
  return checked ? "" : describe(checked.error());
}

void check_refused(const std::string &refusal, const std::string &part) {
  CHECK_MESSAGE(refusal.find(part) != std::string::npos, refusal);
}

std::string replaced(std::string_view text, const std::string &part, const std::string &instead) {
  std::string changed(text);
  return changed.replace(changed.find(part), part.size(), instead);
}

} // namespace

TEST_CASE("a plan whose counts a run can give is let through") {
  CHECK(check_refusal_of(onced_itself, two_sums, "sequential", "effects = 2, stored = 2").empty());
  CHECK(check_refusal_of(onced_itself, two_sums, "duplicates at once", "effects = 2, stored = 2, duplicate = 10", 3)
            .empty());
  CHECK(check_refusal_of(onced_itself, two_sums, "poison", "effects = 2, stored = 2, invalid = 2, dead_letters = 2")
            .empty());
  CHECK(check_refusal_of(onced_itself, two_sums, "burst", "effects = 10, stored = 10", 5).empty());
  CHECK(check_refusal_of(onced_itself, two_sums, "unguarded memory under a kill", "effects_min = 3").empty());
  CHECK(check_refusal_of(charged, two_charges, "not idempotent, retry", "effects = 4, settled = 2").empty());
  CHECK(check_refusal_of(charged, two_charges, "chain of two workers", "effects = 2, settled = 2").empty());
  CHECK(check_refusal_of(charged, two_charges, "poison that kills", "effects = 2, settled = 2, failed = 1").empty());
}

TEST_CASE("a type that nobody handles in a scenario is refused unless the plan wants it to be invalid") {
  const std::string nobody = "nobody handles the type \"charge\" in this scenario";
  check_refused(check_refusal_of(charged, two_charges, "sequential", "effects = 2, stored = 2"), nobody);
  check_refused(check_refusal_of(onced_itself, two_charges, "kill after commit", "effects = 2, stored = 2"), nobody);
  check_refused(check_refusal_of(charged, two_sums, "response lost after the effect", "effects = 2, settled = 2"),
                "nobody handles the type \"sum\" in this scenario");
  const std::string one_of_each =
      "{\"operation_id\":\"a\",\"numbers\":[]}\n{\"operation_id\":\"b\",\"type\":\"charge\"}\n";
  CHECK(check_refusal_of(onced_itself, one_of_each, "sequential", "effects = 1, stored = 1, invalid = 1").empty());
  check_refused(check_refusal_of(replaced(charged, "\"charge\"", "\"sum\""), two_sums, "response lost after the effect",
                                 "effects = 2, settled = 2"),
                "handles the type \"sum\" itself");
}

TEST_CASE("a scenario with a handler is refused where the plan has none") {
  const std::string no_handler(charged.substr(0, charged.find("[handler]")));
  check_refused(check_refusal_of(no_handler, two_charges, "not idempotent, hold", "effects = 2, settled = 2"),
                "plan.toml: not idempotent, hold: its jobs are handled, and the plan has no [handler]");
}

TEST_CASE("a kill that never comes is refused") {
  check_refused(check_refusal_of(of_another, two_sums, "kill after commit", "effects = 2, stored = 2"),
                "the plan does not say when");
  const std::string one_key_often = "{\"operation_id\":\"a\"}\n{\"operation_id\":\"a\"}\n{\"operation_id\":\"a\"}\n";
  check_refused(check_refusal_of(onced_itself, one_key_often, "power loss", "effects = 1, stored = 1, duplicate = 2"),
                "killed at commit 2, and the seeds have 1 different keys");
  check_refused(check_refusal_of(std::string(of_another) + "kill_when = \"done\\n\"\n", two_sums, "sequential",
                                 "effects = 2, stored = 2"),
                "worker.kill_when: no line of the worker begins so");
}

TEST_CASE("counts that no run can give are refused") {
  check_refused(check_refusal_of(onced_itself, two_sums, "sequential", "effects = 0, invalid = 2"), "it shows nothing");
  check_refused(check_refusal_of(onced_itself, two_sums, "sequential", "effects = 3, stored = 2"),
                "would be double ones");
  check_refused(check_refusal_of(onced_itself, two_sums, "duplicate publish", "effects = 2, stored = 2"),
                "told 4 outcomes, and the plan expects 2");
  check_refused(check_refusal_of(onced_itself, two_sums, "sequential", "effects = 2, settled = 2"), "is never counted");
  check_refused(check_refusal_of(onced_itself, two_sums, "sequential", "effects = 2, stored = 2, late = 1"), "be late");
  check_refused(check_refusal_of(onced_itself, two_sums, "unguarded memory under a kill", "effects_min = 2"),
                "cannot show a double effect of 2 jobs");
  check_refused(check_refusal_of(onced_itself, two_sums, "unguarded memory under a kill", "effects_min = 9"),
                "cannot show a double effect of 2 jobs");
  check_refused(check_refusal_of(onced_itself, two_sums, "unguarded memory under a kill", "effects = 2"),
                "a control without effects_min");
}

TEST_CASE("too few jobs to fill a disk and too many to be told are refused") {
  check_refused(check_refusal_of(onced_itself, two_sums, "store unavailable", "effects = 198, settled = 198", 99),
                "198 jobs may still find room");
  std::string many;
  for (unsigned at = 0; at < 13; ++at)
    many += "{\"operation_id\":\"" + std::to_string(at) + "\"}\n";
  check_refused(check_refusal_of(onced_itself, many, "burst", "effects = 13000, stored = 13000", 1000),
                "it would send 13000 jobs");
}

TEST_CASE("a program that is not there is refused by its key") {
  check_refused(check_refusal_of(replaced(of_another, "command = [\"true\"]", "command = [\"/nowhere/worker\"]"),
                                 two_sums, "sequential", "effects = 2, stored = 2"),
                "worker.command: there is no program \"/nowhere/worker\"");
  check_refused(check_refusal_of(replaced(charged, "reconcile = [\"true\"]", "reconcile = [\"no\\u001b-such\"]"),
                                 two_charges, "response lost after the effect", "effects = 2, settled = 2"),
                "handler.reconcile: there is no program \"no\\u001b-such\"");
  check_refused(check_refusal_of(std::string(charged) + "environment = { \"A=B\" = \"c\" }\n", two_charges,
                                 "response lost after the effect", "effects = 2, settled = 2"),
                "handler.environment: no variable can be set so");
}

TEST_CASE(
    "keys of many parts and values that nest deep are found wherever they stand and strings are not looked into") {
  std::string dotted = "a";
  for (unsigned parts = 1; parts < 200'000; ++parts)
    dotted += ".a";
  const std::string brackets(300, '[');
  CHECK(line_too_deep(dotted + " = 1\n") == 1);
  CHECK(line_too_deep("[t]\n[" + dotted + "]\n") == 2);
  CHECK(line_too_deep("x = { b = 1, " + dotted + " = 1 }\n") == 1);
  CHECK(line_too_deep("x = \"\\\"\" # \"\n\"q\" . " + dotted + " = 1\n") == 2);
  CHECK(line_too_deep("x = '''\n'\n''''\n" + dotted + " = 1\n") == 4);
  CHECK(line_too_deep("x = " + brackets + "\n") == 1);
  CHECK_FALSE(line_too_deep("x = \"" + dotted + "\" # " + dotted + "\ny = '" + brackets + "'\n"));
  CHECK_FALSE(line_too_deep("x = \"\"\"\n" + dotted + "\\\"\"\"\n" + brackets + "\"\"\"\na.b.c = [1.5, [2.5]]\n"));
  CHECK_FALSE(parse_plan(dotted + " = 1\n", "plan.toml", scenario_names()));
}

} // namespace onced::rehearsal
