#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "runner/runner_context.hpp"
#include "store/job_queue.hpp"

namespace onced::runner {

// Keeps the time of the schedule: ends leases that nobody extends, and brings in the jobs that the store holds, at the
// start, after each opening of the store, and when there is room for more. One thread, unless said otherwise.
class TimeKeeper {
public:
  explicit TimeKeeper(RunnerContext &context) : context_(context) {}

  // Until `stop`, which is called once the executors have ended.
  void run();
  // The store is open anew: everything in it is looked at. Any thread.
  void look_again();
  // Any thread.
  void stop();

private:
  // A walk through the store's queue, from one key to the end, and then from its beginning to that key.
  struct Walk {
    std::set<std::string, std::less<>> wanted; // types, until they are full
    Bytes start;
    Bytes after;
    bool wrapped = false;
  };

  // A job whose receives are used up, though no handler has ended: its lease has expired, or a worker died with it.
  struct Exhausted {
    FencingToken token; // of its lease; zero: it waits
    std::string type;
  };

  void begin_walk();
  void walk_on();
  void look_at(const store::QueueEntry &entry);
  void begin_end(Bytes key, const FencingToken &token, std::string_view type);
  void end_expired();
  void end_exhausted();
  [[nodiscard]] Result<store::QueueSettled> end(store::JobQueue &queue, BytesView key, const Exhausted &job);

  RunnerContext &context_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> look_again_{true};

  std::optional<Walk> walk_;
  std::map<std::string, Bytes, std::less<>> full_after_; // by type: the last key before the one that had no place
  std::map<Bytes, Exhausted> exhausted_;                 // to be written; at most limits::queue_jobs_in_memory
  Bytes ended_up_to_;                                    // the last of them that had its turn
  bool too_many_exhausted_ = false;
  std::set<std::string, std::less<>> unhandled_; // types that were told of
};

} // namespace onced::runner
