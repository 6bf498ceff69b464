#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/plan.hpp"
#include "rehearsal/record_form.hpp"

namespace onced::rehearsal {

// A record's directory: record.json, record.html, evidence.csv, and copies of the plan and the seeds.

// Writes all of it. Errors: `store_unavailable`.
[[nodiscard]] Result<void> write_record(const std::filesystem::path &directory, const Json &record, const Plan &plan);

struct Review {
  std::string by;
  std::string decision; // accepted or rejected
  std::string note;
};

// Adds a review to a record, in its own file: who, when, what was decided, and the SHA-256 that record.json had before.
// What was reviewed is unchanged. Returns the review as it stands there. Errors: `usage`: no name, no decision, a text
// too long or with control characters, no note where the verdict is not what is accepted, too many reviews; `corrupt`:
// the record does not fit together, so it is not to be reviewed; `locked`: it is being reviewed by another process;
// those of `read_record`; `store_unavailable`.
[[nodiscard]] Result<Json> add_review(const std::filesystem::path &directory, const Review &review, Clock &clock);

// Errors: `not_found`; `corrupt`: no record; `newer_format`: of another version.
[[nodiscard]] Result<Json> read_record(const std::filesystem::path &directory);

// The plan and the seeds in the directory, if they are those that the record was made by; the SHA-256 is that of the
// bytes that are parsed here. Errors: `corrupt`: they are others, so what they name is not to be run; those of
// `read_plan`.
[[nodiscard]] Result<Plan> read_held_plan(const std::filesystem::path &directory, const Json &record);

// What does not fit together in a record; empty: nothing. Errors: as `read_record`.
[[nodiscard]] Result<std::vector<std::string>> verify_record(const std::filesystem::path &directory);

// The SHA-256 of record.json, in hexadecimal. Errors: `not_found`.
[[nodiscard]] Result<std::string> sha256_of_record(const std::filesystem::path &directory);

// Where the facts of two records differ: a text each, such as "scenarios[4].seen.stored: 12, now 11".
[[nodiscard]] std::vector<std::string> compare_facts(const Json &before, const Json &now);

} // namespace onced::rehearsal
