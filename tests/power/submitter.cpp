#include "power/submitter.hpp"

#include <algorithm>
#include <iostream>
#include <random>
#include <utility>

#include <unistd.h>

#include "onced/sender.hpp"
#include "power/task.hpp"
#include "support/job_bytes.hpp"

namespace onced::testing {
namespace {

// One write a line, so that none is half said when the process is killed.
void say(const std::string &line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(1);
}

void submit_all(Sender &sender, const Submission &submission) {
  std::mt19937_64 sizes(submission.seed);
  for (std::size_t begin = 0; begin < submitted_jobs;) {
    const std::size_t end = std::min(submitted_jobs, begin + 1 + sizes() % 64);
    std::vector<Bytes> jobs;
    jobs.reserve(end - begin);
    for (std::size_t number = begin; number < end; ++number)
      jobs.push_back(job_bytes(name_of_job(submission.prefix, number), {static_cast<std::int64_t>(number), 3}));
    if (!sender.submit(std::move(jobs), patience_from_now())) return;
    say("accepted " + std::to_string(begin) + " " + std::to_string(end) + "\n");
    begin = end;
  }
}

void take_all(Sender &sender) {
  for (;;) {
    const auto settled = sender.next_settled(patience_from_now(), 100);
    if (!settled) return;
    std::string lines;
    for (const Settled &job : *settled)
      lines += "settled " + std::to_string(number_of(job.sequence) - 1) + "\n";
    say(lines);
  }
}

} // namespace

std::string name_of_job(const std::string &prefix, std::size_t number) {
  return prefix + std::to_string(number);
}

Process::Options submitter(const Submission &submission) {
  return {.arguments = {submission.outbox, submission.jobs_endpoint, submission.replies_endpoint, submission.prefix,
                        std::to_string(submission.seed)},
          .wrapper = {"/proc/self/exe", std::string(submitter_argument)}};
}

int run_submitter(const std::vector<std::string> &arguments) {
  // The first two are this argument and the command that a wrapper is meant to run.
  const Submission submission{.outbox = arguments.at(2),
                              .jobs_endpoint = arguments.at(3),
                              .replies_endpoint = arguments.at(4),
                              .prefix = arguments.at(5),
                              .seed = std::stoull(arguments.at(6))};
  SystemClock clock;
  SystemRandom ids;
  SilentLog log;
  SenderOptions options;
  options.jobs_endpoint = submission.jobs_endpoint;
  options.replies_endpoint = submission.replies_endpoint;
  options.outbox = submission.outbox;
  auto sender = Sender::start(options, clock, ids, log);
  if (!sender) {
    std::cerr << describe(sender.error()) << '\n';
    return 1;
  }
  Task submitting([&] { submit_all(**sender, submission); });
  take_all(**sender);
  submitting.finish();
  return 0;
}

} // namespace onced::testing
