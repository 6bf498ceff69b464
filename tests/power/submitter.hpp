#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "onced/bytes.hpp"
#include "support/command.hpp"

namespace onced::testing {

// A process with a sender and an outbox, which is this program executed again: it submits jobs 0 to `submitted_jobs` in
// batches of random size, and says on its standard output what it was promised, as soon as it was:
//   accepted FIRST END   `submit` has returned for these jobs, END not among them
//   settled NUMBER       this job has its final outcome, and may leave the outbox from here on
inline constexpr std::size_t submitted_jobs = 4000;

struct Submission {
  std::string outbox;
  std::string jobs_endpoint;
  std::string replies_endpoint;
  std::string prefix; // of the operation ids
  std::uint64_t seed = 0;
};

[[nodiscard]] std::string name_of_job(const std::string &prefix, std::size_t number);

// How that process is started, and what it does with what `main` is given; its exit code.
[[nodiscard]] Process::Options submitter(const Submission &submission);
inline constexpr std::string_view submitter_argument = "--submitter";
[[nodiscard]] int run_submitter(const std::vector<std::string> &arguments);

} // namespace onced::testing
