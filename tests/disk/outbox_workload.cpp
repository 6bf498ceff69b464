#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "disk/workloads.hpp"
#include "onced/digest.hpp"
#include "sender/outbox.hpp"

namespace fs = std::filesystem;

namespace onced::testing {
namespace {

using sender::Outbox;
using sender::OutboxJob;

struct OutboxAction {
  enum class Kind : std::uint8_t { open, append, remove };
  Kind kind = Kind::open;
  std::uint64_t first = 0; // sequences, from this one
  std::uint64_t last = 0;  // to this one
};

using Kind = OutboxAction::Kind;

// More bytes than a memtable takes, so that the next append begins another one and another log.
constexpr std::uint64_t first_large = 10;
constexpr std::uint64_t last_large = 18;

constexpr std::array outbox_actions{
    OutboxAction{}, // 0: of the first part
    OutboxAction{Kind::append, 1, 3},
    OutboxAction{Kind::append, 4, 4},
    OutboxAction{Kind::remove, 1, 2},
    OutboxAction{Kind::append, 5, 6},
    OutboxAction{},
    OutboxAction{Kind::remove, 3, 3},
    OutboxAction{Kind::append, 7, 7},
    OutboxAction{}, // 8: behind the first part
    OutboxAction{Kind::append, 8, 8},
    OutboxAction{},
    OutboxAction{Kind::append, 9, 9},
    OutboxAction{Kind::remove, 8, 9}, // the last sequences there were
    OutboxAction{}, // 13: of the second part. The fifth opening: there are tables enough for a compaction
    OutboxAction{Kind::append, first_large, last_large},
    OutboxAction{Kind::append, 19, 19},
    OutboxAction{Kind::remove, 10, 16},
    OutboxAction{Kind::append, 20, 21},
    OutboxAction{Kind::remove, 20, 20},
};

void require(bool condition, const std::string &complaint) {
  if (!condition) throw std::runtime_error(complaint);
}

SenderId sender_of_the_outbox() {
  SenderId id;
  id.bytes.fill(7);
  return id;
}

OutboxJob job_of(std::uint64_t sequence) {
  const bool large = sequence >= first_large && sequence <= last_large;
  OutboxJob job;
  job.sequence = Sequence{sequence};
  job.issued_at = WallTime{std::chrono::microseconds{1'700'000'000'000'000 + static_cast<std::int64_t>(sequence)}};
  job.job = "job " + std::to_string(sequence) + Bytes(large ? 950'000 : 0, 'x');
  job.tag = Digester().tag(job.job);
  return job;
}

bool same(const OutboxJob &left, const OutboxJob &right) {
  return left.tag == right.tag && left.issued_at == right.issued_at && left.job == right.job;
}

Result<void> perform(Outbox &outbox, const OutboxAction &action) {
  std::vector<OutboxJob> jobs;
  std::vector<Sequence> sequences;
  for (std::uint64_t sequence = action.first; sequence <= action.last; ++sequence) {
    jobs.push_back(job_of(sequence)); // NOLINT(performance-inefficient-vector-operation): a few
    sequences.push_back(Sequence{sequence});
  }
  if (action.kind == Kind::append) return outbox.append(jobs, Sequence{action.last});
  return outbox.remove(sequences);
}

// What must and what may be in the outbox.
struct Expected {
  std::map<std::uint64_t, bool> jobs; // by sequence; true: it must be there
  std::uint64_t last = 0;             // the last sequence of the appends that were told
  std::uint64_t first_asked = 0;      // the sequences of the append that was asked and not told: all are there or none
  std::uint64_t last_asked = 0;       // 0: there is no such
};

Expected expected_after(const Notebook &notebook) {
  Expected expected;
  for (std::uint64_t at = 0; at < notebook.asked; ++at) {
    const OutboxAction &action = outbox_actions.at(at);
    const bool told = at < notebook.told;
    for (std::uint64_t sequence = action.first; sequence != 0 && sequence <= action.last; ++sequence)
      expected.jobs[sequence] = action.kind == Kind::append && told;
    if (action.kind != Kind::append) continue;
    if (told) expected.last = action.last;
    if (!told) expected.first_asked = action.first;
    if (!told) expected.last_asked = action.last;
  }
  return expected;
}

std::map<std::uint64_t, OutboxJob> jobs_in(const Outbox &outbox) {
  const auto read = outbox.read_after(Sequence{0}, 1'000, std::size_t{1} << 30U);
  require(read.has_value() && read->at_end, "the jobs cannot be read");
  std::map<std::uint64_t, OutboxJob> jobs;
  for (const OutboxJob &job : read->jobs)
    jobs[number_of(job.sequence)] = job;
  return jobs;
}

void check_rows(const Outbox &outbox, const Notebook &notebook) {
  const Expected expected = expected_after(notebook);
  const auto jobs = jobs_in(outbox);
  require(jobs.size() == outbox.found().jobs, "it counts other jobs than it reads");
  for (const auto &[sequence, must] : expected.jobs)
    require(!must || jobs.contains(sequence), "job " + std::to_string(sequence) + " was kept, and is gone");
  for (const auto &[sequence, job] : jobs) {
    require(expected.jobs.contains(sequence), "job " + std::to_string(sequence) + " was never given");
    require(same(job, job_of(sequence)), "job " + std::to_string(sequence) + " is another one");
  }
  if (expected.last_asked != 0 && jobs.contains(expected.first_asked)) {
    for (std::uint64_t sequence = expected.first_asked; sequence <= expected.last_asked; ++sequence)
      require(jobs.contains(sequence), "a part of one append is there");
  }
  const std::uint64_t last = number_of(outbox.found().last_sequence);
  require(last == expected.last || (last != 0 && last == expected.last_asked),
          "the last sequence is " + std::to_string(last) + ", and " + std::to_string(expected.last) + " was told");
  require(jobs.empty() || jobs.rbegin()->first <= last, "the last sequence lies below a job");
  require(notebook.told == 0 || outbox.id() == sender_of_the_outbox(), "the sender id is another one");
}

void meet_failure(std::unique_ptr<Outbox> outbox, SimulatedDisk &disk, const fs::path &directory, const Error &error,
                  const Notebook &notebook) {
  require(notebook.disk.struck, "failed before the disk did: " + describe(error));
  require(error.code == ErrorCode::store_unavailable, "the wrong error: " + describe(error));
  for (int again = 0; again < 2 && outbox != nullptr; ++again) {
    require(!perform(*outbox, {Kind::append, 100, 100}), "kept a job after a failure");
    require(!perform(*outbox, {Kind::remove, 100, 100}), "removed a job after a failure");
    disk.heal();
  }
  outbox.reset();
  disk.heal();
  const auto opened = Outbox::open(directory, sender_of_the_outbox(), disk.environment());
  require(opened.has_value(),
          "the disk is well, and the outbox does not open: " + (opened ? std::string() : describe(opened.error())));
  check_rows(**opened, notebook);
}

void play(SimulatedDisk &disk, const fs::path &directory, Part part, const TrialOptions &, Notebook &notebook) {
  const auto environment = disk.environment();
  std::unique_ptr<Outbox> outbox;
  for (std::uint64_t at = part.first; at < part.end; ++at) {
    const OutboxAction &action = outbox_actions.at(at);
    notebook.asked = at + 1;
    Result<void> done;
    if (action.kind == Kind::open) {
      outbox.reset();
      auto opened = Outbox::open(directory, sender_of_the_outbox(), environment);
      if (opened) outbox = std::move(*opened);
      if (!opened) done = tl::unexpected(opened.error());
    } else {
      done = perform(*outbox, action);
    }
    if (!done) return meet_failure(std::move(outbox), disk, directory, done.error(), notebook);
    notebook.told = notebook.asked;
    disk.await_quiet();
  }
}

void check(const fs::path &directory, const std::shared_ptr<StorageEnvironment> &environment,
           const TrialOptions &options, Notebook &notebook) {
  auto opened = Outbox::open(directory, sender_of_the_outbox(), environment);
  if (!opened && options.plan.garbage && opened.error().code == ErrorCode::corrupt) {
    notebook.refused = true;
    return;
  }
  require(opened.has_value(), opened ? std::string() : "it does not open: " + describe(opened.error()));
  check_rows(**opened, notebook);
  // What is found in it may be sent: from here on it must stay.
  if (number_of((*opened)->found().last_sequence) == expected_after(notebook).last_asked)
    notebook.told = notebook.asked;
  if (notebook.told == outbox_actions.size()) return;
  const OutboxAction &next = outbox_actions.at(notebook.told);
  notebook.asked = notebook.told + 1;
  require(next.kind == Kind::open || perform(**opened, next).has_value(), "it fails on a disk that is well");
  notebook.told = notebook.asked;
  require(jobs_in(**opened).size() >= (next.kind == Kind::append ? next.last - next.first + 1 : 0), "jobs are missing");
}

} // namespace

const Workload &outbox_workload() {
  static const Workload workload{.name = "outbox",
                                 .parts = {{.first = 0, .end = 8}, {.first = 13, .end = outbox_actions.size()}},
                                 .play = &play,
                                 .check = &check};
  return workload;
}

} // namespace onced::testing
