#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

#include "onced/event_log.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "onced/limits.hpp"
#include "onced/outcome.hpp"
#include "onced/random.hpp"
#include "runner/job_lock.hpp"
#include "runner/queue_counters.hpp"
#include "runner/schedule.hpp"
#include "store/store_keeper.hpp"

namespace onced::runner {

// How a queued job has ended, or that it is held, for whoever still waits for it. What it says is on stable storage.
struct JobEnd {
  BytesView key;
  const Job &job;
  Outcome outcome = Outcome::stored; // or failed; or accepted: it is held
  BytesView result = {};             // stored only
  std::string_view detail = {};      // accepted only: where it is
};

struct RunnerOptions {
  std::filesystem::path directory; // the data directory: the locks of jobs are in there
  std::uint64_t boot = 0;          // the boot count of the store's first opening by this process
  bool cut_heartbeats = false;     // a knob of the lab: no lease is extended
  std::size_t jobs_in_memory = limits::queue_jobs_in_memory; // of one type; more than its concurrency
  std::optional<std::uint64_t> descriptors_max = {};         // that a command may have open; nothing: as this process
};

// What the threads share that hand queued jobs to their handlers: the executors, and one time keeper. It goes on across
// reopenings of the store: the tokens of all leases of this process carry the boot count of its first opening, which no
// other process can have.
struct RunnerContext {
  // All must outlive it.
  RunnerContext(const RunnerOptions &options, const Handlers &handlers_of_worker, store::StoreKeeper &store_keeper,
                Clock &its_clock, Random &random, EventLog &its_log, QueueCounters &its_counters,
                std::function<void(const JobEnd &)> when_a_job_ends);

  const Handlers &handlers;
  store::StoreKeeper &keeper;
  Clock &clock;
  EventLog &log;
  QueueCounters &counters;
  Schedule schedule;
  JobLocks locks;
  std::mutex conversion;                        // held while a payload becomes JSON, which takes memory
  std::optional<std::uint64_t> descriptors_max; // that a command may have open; nothing: as this process
  std::function<void(const JobEnd &)> on_end;   // called from any executor
};

} // namespace onced::runner
