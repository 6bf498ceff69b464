// The plan and its seeds: what is read from them, and what is refused. Not whether a plan can be played: that is the
// demo's rehearsal.
#include "rehearsal/plan.hpp"

#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"

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

// The head with something else in the place of a part.
std::string without(const std::string &part, const std::string &instead) {
  std::string text(head);
  return text.replace(text.find(part), part.size(), instead);
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

TEST_CASE("what a control must show is its only count") {
  const auto plan =
      parse_plan(with("[[scenario]]\nname = \"poison\"\nexpected = { effects_min = 3 }\n"), "plan.toml", known);
  REQUIRE(plan);
  CHECK(plan->scenarios[0].expected == ScenarioCounts{{"effects_min", 3}});
  CHECK(holds(refusal_of(with("[[scenario]]\nname = \"poison\"\nexpected = { effects = 3, effects_min = 3 }\n")),
              "scenario.expected.effects_min: there is no such key"));
}

TEST_CASE("a handler is read whole or refused") {
  const std::string handler = "[handler]\ncommand = [\"c\", \"1\"]\nreconcile = [\"r\"]\nprovider = [\"p\"]\n";
  const auto plan =
      parse_plan(with(sequential) + handler + "environment = { URL = \"{provider}/x\" }\n", "plan.toml", known);
  REQUIRE(plan);
  CHECK(plan->handler.command == std::vector<std::string>{"c", "1"});
  CHECK(plan->handler.environment.at("URL") == "{provider}/x");
  CHECK(holds(refusal_of(with(sequential) + "[handler]\ncommand = [\"c\"]\nprovider = [\"p\"]\n"),
              "handler.reconcile: it is missing"));
  CHECK(
      holds(refusal_of(with(sequential) + handler + "environment = { URL = 1 }\n"), "handler.environment: wrong type"));
  CHECK(holds(refusal_of(with(sequential) + handler + "policy = \"hold\"\n"), "handler.policy: there is no such key"));
  CHECK(holds(refusal_of("handler = 1\n" + with(sequential)), "handler: this is a table"));
}

TEST_CASE("a value of the wrong type or out of range is refused") {
  CHECK(holds(refusal_of(with("threads = \"two\"\n")), "worker.threads: wrong type"));
  CHECK(holds(refusal_of(with("threads = 0\n")), "out of range"));
  CHECK(holds(refusal_of(with("threads = 65\n")), "out of range"));
  CHECK(holds(refusal_of(with("durability = \"maybe\"\n")), "no durability mode"));
  CHECK(holds(refusal_of(with("command = [\"worker\"]\n")), "command and count go together"));
  CHECK(holds(refusal_of(with("command = \"worker\"\n")), "worker.command: wrong type"));
  CHECK(holds(refusal_of(with("command = [1]\n")), "worker.command: wrong type"));
  CHECK(holds(refusal_of(with("[[scenario]]\nname = \"poison\"\ncopies = 0\n")), "scenario.copies: out of range"));
  CHECK(holds(refusal_of(with("[[scenario]]\nname = \"poison\"\nexpected = { effects = -1 }\n")),
              "scenario.expected.effects: out of range"));
  CHECK(
      holds(refusal_of(without("review_by = 2027-01-31", "review_by = \"2027-01-31\"")), "plan.review_by: wrong type"));
  CHECK(holds(refusal_of("[plan\n"), "plan.toml:1: not TOML"));
}

TEST_CASE("a table that is none is refused") {
  CHECK(holds(refusal_of("plan = 1\n"), "plan.toml:1: plan: this is a table"));
  CHECK(holds(refusal_of(with("[scenario]\nname = \"poison\"\n")), "scenario: there is none"));
  CHECK(holds(refusal_of("scenario = []\n" + std::string(head)), "plan.toml:1: scenario: there is none"));
  CHECK(holds(refusal_of("scenario = [1]\n" + std::string(head)), "plan.toml:1: scenario: this is a table"));
}

TEST_CASE("a value that is missing is refused by its name") {
  for (const std::string name : {"owner", "duplicate_accepted_by", "reconciliation_owner", "schema", "retry_policy"}) {
    const std::size_t begin = head.find("\n" + name) + 1;
    const std::string line(head.substr(begin, head.find('\n', begin) - begin));
    CHECK_MESSAGE(holds(refusal_of(without(line, "")), "." + name + ": it is missing"), name);
  }
}

TEST_CASE("a duration is a number of seconds or milliseconds within an hour") {
  const auto timeout_of = [](const std::string &written) {
    return without("visibility_timeout = \"500ms\"", "visibility_timeout = \"" + written + "\"").append(sequential);
  };
  const auto plan = parse_plan(timeout_of("2s"), "plan.toml", known);
  REQUIRE(plan);
  CHECK(plan->worker.visibility_timeout == std::chrono::seconds(2));
  for (const std::string wrong : {"", "2", "s", "2 s", "2m", "0s", "-1s", "1.5s", "3600001ms", "99999999999999999999s"})
    CHECK_MESSAGE(holds(refusal_of(timeout_of(wrong)), "worker.visibility_timeout: no duration"), wrong);
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

TEST_CASE("a plan is read from its file with the seeds beside it") {
  const ScratchDirectory directory;
  const auto path = directory.path() / "plan.toml";
  CHECK(read_plan(path, known).error().code == ErrorCode::not_found);
  std::ofstream(path) << with(sequential);
  CHECK(read_plan(path, known).error().code == ErrorCode::not_found);
  CHECK(holds(read_plan(path, known).error().concerns, "jobs.jsonl"));
  std::ofstream(directory.path() / "jobs.jsonl") << "{\"operation_id\":\"a\"}\n\n{\"operation_id\":\"b\"}\n";
  const auto plan = read_plan(path, known);
  REQUIRE(plan);
  CHECK(plan->text == with(sequential));
  CHECK(plan->seeds.operation_ids == std::vector<std::string>{"a", "b"});
  CHECK(plan->seeds.lines.size() == 2);
  std::ofstream(directory.path() / "jobs.jsonl") << "no job\n";
  CHECK(read_plan(path, known).error().code == ErrorCode::configuration);
}

} // namespace onced::rehearsal
