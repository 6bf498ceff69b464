#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "base/wake.hpp"
#include "onced/event_log.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "onced/outcome.hpp"
#include "runner/board.hpp"
#include "runner/job_lock.hpp"
#include "runner/queue_counters.hpp"
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

// What the threads of a Runner share.
struct RunnerContext {
  const Handlers &handlers;
  store::StoreKeeper &keeper;
  Clock &clock;
  EventLog &log;
  QueueCounters &counters;
  Board &board;
  JobLocks &locks;
  std::mutex &conversion;                       // held while a payload becomes JSON, which takes memory
  std::optional<std::uint64_t> descriptors_max; // that a command may have open; nothing: as this process
  Wake &stop;                                   // rung once commands are to be stopped, and never cleared
  std::function<void(const JobEnd &)> on_end;   // called from any executor
};

} // namespace onced::runner
