#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/wake.hpp"
#include "onced/random.hpp"
#include "onced/store.hpp"
#include "runner/executor.hpp"
#include "runner/time_keeper.hpp"

namespace onced::runner {

struct RunnerOptions {
  std::filesystem::path directory; // the data directory: the locks of jobs are in there
  std::uint64_t boot = 0;          // the boot count of the store's first opening by this process
  bool cut_heartbeats = false;     // a knob of the lab: no lease is extended
  std::size_t jobs_in_memory = limits::queue_jobs_in_memory; // of one type; more than its concurrency
  std::optional<std::uint64_t> descriptors_max = {};         // that a command may have open; nothing: as this process
};

// Hands queued jobs to their handlers, and writes what becomes of them. It goes on across reopenings of the store: the
// tokens of all leases of this process carry the boot count of its first opening, which no other process can have.
class Runner {
public:
  // `on_end` is called from any executor. All must outlive it. Errors: `usage` (more threads are wanted than
  // limits::handler_threads_max); `store_unavailable` (the folder of the locks).
  [[nodiscard]] static Result<std::unique_ptr<Runner>> make(const RunnerOptions &options, const Handlers &handlers,
                                                            store::StoreKeeper &keeper, Clock &clock, Random &random,
                                                            EventLog &log, QueueCounters &counters,
                                                            std::function<void(const JobEnd &)> on_end);

  // How many threads shall be executors: one for each lease that there may be at once.
  [[nodiscard]] static unsigned executors_of(const Handlers &handlers);
  // Errors: `usage`, they are more than limits::handler_threads_max.
  [[nodiscard]] static Result<void> check(const Handlers &handlers);
  [[nodiscard]] unsigned executors() const { return executors_; }
  // One of the executors, from 0, in a thread of its own: until `drain`, and the end of the job in hand.
  void run_executor(unsigned number);
  // The thread that keeps the time: until `stop`, which is called once the executors have ended.
  void run_time_keeper() { time_keeper_.run(); }

  // A job waits in the store. Any thread, as all that follows.
  void add(BytesView key, std::string_view type, WallTime accepted_at) { board_.announce(key, type, accepted_at); }
  // The store is open anew.
  void look_again() { time_keeper_.look_again(); }
  // No more jobs are handed over; handlers that still run after so long are asked to stop. A second call can only make
  // that earlier.
  void drain(std::chrono::milliseconds run_on = {});
  void stop() { time_keeper_.stop(); }

  [[nodiscard]] std::vector<Board::TypeState> state() const { return board_.state(); }

private:
  Runner(const RunnerOptions &options, const Handlers &handlers, store::StoreKeeper &keeper, Clock &clock,
         Random &random, EventLog &log, QueueCounters &counters, std::function<void(const JobEnd &)> on_end);
  [[nodiscard]] Result<void> prepare();

  unsigned executors_ = 0;
  Board board_;
  JobLocks locks_;
  std::mutex conversion_;
  Wake stop_commands_; // rung once, and never cleared
  RunnerContext context_;
  TimeKeeper time_keeper_;
};

} // namespace onced::runner
