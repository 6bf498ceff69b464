// The files of a record: that what is no record is refused, that an edit of a file by itself is found, and how a review
// seals it. Not whether its parts belong together (record_rules_test.cpp).
#include <fstream>
#include <iterator>

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

} // namespace

TEST_CASE("the record that the page is tested with is of the form") {
  const auto sample = read_file(std::filesystem::path(ONCED_TESTS_DIR) / "rehearsal" / "sample_record.json", 1'000'000);
  REQUIRE(sample);
  CHECK(problems_of_form(parse_json(*sample)) == std::vector<std::string>());
}

TEST_CASE("a key that is missing or unknown is named") {
  CHECK(problem_of_form_without("", "observed") == "observed: is missing");
  CHECK(problem_of_form_without("/facts", "constraint") == "facts.constraint: is missing");
  CHECK(problem_of_form_without("/facts/scenarios/1", "seen") == "facts.scenarios[1].seen: is missing");
  CHECK(problem_of_form_without("/facts/scenarios/1/seen", "stored") == "facts.scenarios[1].seen.stored: is missing");
  CHECK(problem_of_form_without("/observed/scenarios/1/evidence/0", "log") ==
        "observed.scenarios[1].evidence[0].log: is missing");
  CHECK(problem_of_form_after("/facts/constraint", {{"key", "k"}}) == "facts.constraint.digest: is missing");
  CHECK(problem_of_form_after("/facts/scenarios/3/expected/effects", 2) ==
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
