#pragma once

#include <filesystem>
#include <functional>
#include <mutex>

#include "onced/event_log.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "onced/outcome.hpp"
#include "queue/board.hpp"
#include "queue/queue_counters.hpp"
#include "store/store_keeper.hpp"

namespace onced::queue {

// How a queued job has ended, for whoever still waits for that. What it says is on stable storage.
struct JobEnd {
  BytesView key;
  const Job &job;
  Outcome outcome = Outcome::stored; // or failed
  BytesView result;                  // stored only
};

// What the threads of a Runner share.
struct RunnerContext {
  const Handlers &handlers;
  store::StoreKeeper &keeper;
  Clock &clock;
  EventLog &log;
  QueueCounters &counters;
  Board &board;
  std::filesystem::path locks;                // the folder of the locks of jobs
  std::mutex &conversion;                     // held while a payload becomes JSON, which takes memory
  int stop = -1;                              // a descriptor that becomes readable when commands are to be stopped
  std::function<void(const JobEnd &)> on_end; // called from any executor
};

} // namespace onced::queue
