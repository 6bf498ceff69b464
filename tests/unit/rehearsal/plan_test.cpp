// The plan and its seeds: what is read from them, and what is refused. Not whether a plan can be played: that is the
// demo's rehearsal.
#include "rehearsal/plan.hpp"

#include <string>

#include <doctest/doctest.h>

namespace onced::rehearsal {
namespace {

const std::vector<std::string> known{"sequential", "poison"};

constexpr std::string_view head = R"([plan]
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
visibility_timeout = "500ms"
)";

std::string with(std::string_view more) {
  return std::string(head).append(more);
}

std::string refusal_of(const std::string &toml) {
  const auto plan = parse_plan(toml, "plan.toml", known);
  return plan ? "" : describe(plan.error());
}

std::string refusal_of_seeds(const std::string &text, std::vector<std::string> conflicting = {}) {
  Seeds seeds;
  seeds.file = "jobs.jsonl";
  seeds.conflicting = std::move(conflicting);
  const auto parsed = parse_seeds(text, seeds);
  return parsed ? "" : describe(parsed.error());
}

bool holds(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

constexpr std::string_view sequential = "[[scenario]]\nname = \"sequential\"\nexpected = { effects = 2, stored = 2 }\n";

} // namespace

TEST_CASE("a plan is read with every count that it does not name as zero") {
  const auto plan = parse_plan(with(sequential), "folder/plan.toml", known);
  REQUIRE(plan);
  CHECK(plan->name == "demo");
  CHECK(plan->review_by == "2027-01-31");
  CHECK(plan->file == "plan.toml");
  CHECK(plan->side_effect.owner == "ledger");
  CHECK(plan->worker.visibility_timeout == std::chrono::milliseconds(500));
  CHECK(plan->worker.command.empty());
  REQUIRE(plan->scenarios.size() == 1);
  CHECK(plan->scenarios[0].expected.at("effects") == 2);
  CHECK(plan->scenarios[0].expected.at("stored") == 2);
  CHECK(plan->scenarios[0].expected.at("conflict") == 0);
}

TEST_CASE("a plan with a key that is not known is refused by file and line and key") {
  CHECK(holds(refusal_of(with("thread = 2\n")), "plan.toml:17: worker.thread: there is no such key"));
  CHECK(holds(refusal_of(with(sequential) + "kopies = 2\n"), "scenario.kopies"));
  CHECK(holds(refusal_of(with(sequential) + "[extra]\n"), "plan.toml:20: extra"));
  CHECK(holds(refusal_of(with("[[scenario]]\nname = \"poison\"\nexpected = { effects = 1, sotred = 1 }\n")), "sotred"));
}

TEST_CASE("a scenario without an expected count of effects is refused") {
  CHECK(holds(refusal_of(with("[[scenario]]\nname = \"poison\"\n")), "scenario.expected: it is missing"));
  CHECK(holds(refusal_of(with("[[scenario]]\nname = \"poison\"\nexpected = { stored = 2 }\n")), "effects"));
  CHECK(holds(refusal_of(with("")), "scenario: there is none"));
}

TEST_CASE("a scenario that is unknown or there twice is refused") {
  CHECK(holds(refusal_of(with("[[scenario]]\nname = \"poisson\"\nexpected = { effects = 2 }\n")), "poisson"));
  CHECK(holds(refusal_of(with(sequential).append(sequential)), "it is there twice"));
}

TEST_CASE("a value of the wrong type or out of range is refused") {
  CHECK(holds(refusal_of(with("threads = \"two\"\n")), "worker.threads: wrong type"));
  CHECK(holds(refusal_of(with("threads = 0\n")), "out of range"));
  CHECK(holds(refusal_of(with("durability = \"maybe\"\n")), "no durability mode"));
  CHECK(holds(refusal_of(with("command = [\"worker\"]\n")), "command and count go together"));
  CHECK(holds(refusal_of("[plan\n"), "plan.toml:1: not TOML"));
}

TEST_CASE("an id that is there twice with different payloads is refused unless the plan says so") {
  const std::string twice = "{\"operation_id\":\"a\",\"numbers\":[1]}\n{\"operation_id\":\"a\",\"numbers\":[2]}\n";
  CHECK(holds(refusal_of_seeds(twice), "jobs.jsonl:2: the id \"a\" is there twice"));
  CHECK(refusal_of_seeds(twice, {"a"}).empty());
  CHECK(refusal_of_seeds("{\"operation_id\":\"a\",\"n\":1}\n\n{\"n\":1,\"operation_id\":\"a\"}\n").empty());
  CHECK(holds(refusal_of_seeds("{\"operation_id\":\"a\"}\n", {"a"}), "which is not there twice"));
}

TEST_CASE("a seed file without a job in every line is refused") {
  CHECK(holds(refusal_of_seeds("{\"operation_id\":\"a\"}\nnot json\n"), "jobs.jsonl:2: no job"));
  CHECK(holds(refusal_of_seeds("{\"numbers\":[1]}\n"), "no job with an operation_id"));
  CHECK(holds(refusal_of_seeds("\n"), "there are no jobs"));
}

} // namespace onced::rehearsal
