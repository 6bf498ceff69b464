// A record's files: that an edit which makes them inconsistent is found, and that facts are compared. Not that a
// rehearsal writes a true record: that is the demo's.
#include "rehearsal/record.hpp"

#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "onced/digest.hpp"
#include "support/temp_directory.hpp"

namespace onced::rehearsal {
namespace {

std::string sha256_of(const std::string &text) {
  return to_hex(Digester().plain(text).view());
}

Plan small_plan() {
  Plan plan;
  plan.file = "plan.toml";
  plan.text = "# a plan\n";
  plan.seeds.file = "jobs.jsonl";
  plan.seeds.text = "{\"operation_id\":\"a\"}\n";
  return plan;
}

// One scenario in which one job was stored.
Json small_record() {
  const Plan plan = small_plan();
  const Json counts{{"effects", 1},  {"dead_letters", 0}, {"stored", 1}, {"duplicate", 0},
                    {"conflict", 0}, {"invalid", 0},      {"failed", 0}};
  const Json row{{"scenario", "sequential"},
                 {"operation_id", "a"},
                 {"tag", "00"},
                 {"sender", "00"},
                 {"sequence", 1},
                 {"attempt", 1},
                 {"publish_at", "t1"},
                 {"consume_at", "t2"},
                 {"commit_at", "t3"},
                 {"acknowledgement_at", "t4"},
                 {"rows_written", 1},
                 {"outcome", "stored"},
                 {"killed", nullptr},
                 {"log", "=\"quoted\", and more"}};
  const Json outcome{{"operation_id", "a"}, {"outcome", "stored"}, {"count", 1}};
  const Json scenario{{"name", "sequential"}, {"is_control", false}, {"status", "passed"},
                      {"expected", counts},   {"seen", counts},      {"differences", Json::array()},
                      {"effects_before", 0},  {"effects_after", 1},  {"outcomes", Json::array({outcome})}};
  const Json facts{{"verdict", "passed"},
                   {"counts", {{"scenarios", 1}, {"passed", 1}, {"failed", 0}, {"skipped", 0}}},
                   {"plan", {{"file", plan.file}, {"sha256", sha256_of(plan.text)}}},
                   {"seeds", {{"file", plan.seeds.file}, {"sha256", sha256_of(plan.seeds.text)}}},
                   {"scenarios", Json::array({scenario})}};
  const Json observed{{"scenarios", Json::array({Json{{"name", "sequential"}, {"evidence", Json::array({row})}}})}};
  return Json{{"format", "onced rehearsal"}, {"version", 1}, {"facts", facts}, {"observed", observed}};
}

// How many problems a record has that was written whole after an edit.
std::size_t problems_after(const std::string &pointer, const Json &value) {
  const testing::TempDirectory directory;
  Json record = small_record();
  record[Json::json_pointer(pointer)] = value;
  REQUIRE(write_record(directory.path(), record, small_plan()));
  const auto problems = verify_record(directory.path());
  REQUIRE(problems);
  return problems->size();
}

} // namespace

TEST_CASE("a record whose parts belong together has no problem") {
  CHECK(problems_after("/facts/scenarios/0/name", "sequential") == 0);
}

TEST_CASE("an edit of a figure that others rest on is found") {
  CHECK(problems_after("/facts/verdict", "failed") > 0);
  CHECK(problems_after("/facts/counts/passed", 2) > 0);
  CHECK(problems_after("/facts/scenarios/0/status", "failed") > 0);
  CHECK(problems_after("/facts/scenarios/0/seen/effects", 2) > 0);
  CHECK(problems_after("/facts/scenarios/0/seen/stored", 2) > 0);
  CHECK(problems_after("/facts/scenarios/0/expected/stored", 2) > 0);
  CHECK(problems_after("/facts/scenarios/0/effects_after", 2) > 0);
  CHECK(problems_after("/facts/scenarios/0/outcomes/0/count", 2) > 0);
  CHECK(problems_after("/facts/plan/sha256", "00") > 0);
  CHECK(problems_after("/facts/seeds/sha256", "00") > 0);
  CHECK(problems_after("/observed/scenarios/0/evidence/0/rows_written", 0) > 0);
  CHECK(problems_after("/observed/scenarios/0/evidence/0/acknowledgement_at", nullptr) > 0);
  CHECK(problems_after("/observed/scenarios/0/name", "poison") > 0);
}

TEST_CASE("a file of a record that was edited by itself is found") {
  for (const std::string name : {"plan.toml", "jobs.jsonl", "evidence.csv", "record.html"}) {
    const testing::TempDirectory directory;
    REQUIRE(write_record(directory.path(), small_record(), small_plan()));
    std::ofstream(directory.path() / name, std::ios::app) << " ";
    const auto problems = verify_record(directory.path());
    REQUIRE(problems);
    CHECK_MESSAGE(problems->size() == 1, name);
  }
}

TEST_CASE("a directory without a record and a record of another version are refused") {
  const testing::TempDirectory directory;
  CHECK(verify_record(directory.path()).error().code == ErrorCode::not_found);
  Json record = small_record();
  record["version"] = 2;
  REQUIRE(write_record(directory.path(), record, small_plan()));
  CHECK(verify_record(directory.path()).error().code == ErrorCode::newer_format);
}

TEST_CASE("cells of the evidence are quoted and none begins a formula") {
  const testing::TempDirectory directory;
  REQUIRE(write_record(directory.path(), small_record(), small_plan()));
  std::ifstream file(directory.path() / "evidence.csv");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text.find("scenario,operation_id,tag,") == 0);
  CHECK(text.find(",1,stored,,\"'=\"\"quoted\"\", and more\"\n") != std::string::npos);
}

TEST_CASE("facts that differ are named and what was observed is not compared") {
  const Json before = small_record();
  Json now = before;
  now["observed"]["scenarios"][0]["evidence"] = Json::array();
  CHECK(compare_facts(before, now).empty());
  now["facts"]["scenarios"][0]["seen"]["stored"] = 2;
  CHECK(compare_facts(before, now) == std::vector<std::string>{"scenarios[0].seen.stored: 1, now 2"});
}

} // namespace onced::rehearsal
