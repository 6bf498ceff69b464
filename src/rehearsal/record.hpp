#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "onced/error.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/plan.hpp"

namespace onced::rehearsal {

// Of the form of docs/rehearsal-record.md.
inline constexpr unsigned record_version = 2;

// A record's directory: record.json, record.html, evidence.csv, and copies of the plan and the seeds.

// Writes all of it. Errors: `store_unavailable`.
[[nodiscard]] Result<void> write_record(const std::filesystem::path &directory, const Json &record, const Plan &plan);

// Errors: `not_found`; `corrupt`: no record; `newer_format`: of another version.
[[nodiscard]] Result<Json> read_record(const std::filesystem::path &directory);

// Whether plan and seeds in the directory are those that the record was made by. Errors: `corrupt`: they are not, so
// what they name is not to be run; `not_found`.
[[nodiscard]] Result<void> hold_plan(const std::filesystem::path &directory, const Json &record);

// The rows of evidence of all scenarios, in their order.
[[nodiscard]] std::vector<Json> evidence_of(const Json &record);

// What does not fit together in a record; empty: nothing. Errors: as `read_record`.
[[nodiscard]] Result<std::vector<std::string>> verify_record(const std::filesystem::path &directory);

// The SHA-256 of record.json, in hexadecimal. Errors: `not_found`.
[[nodiscard]] Result<std::string> sha256_of_record(const std::filesystem::path &directory);

// Where the facts of two records differ: a text each, such as "scenarios[4].seen.stored: 12, now 11".
[[nodiscard]] std::vector<std::string> compare_facts(const Json &before, const Json &now);

} // namespace onced::rehearsal
