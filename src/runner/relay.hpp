#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/event_log.hpp"
#include "onced/random.hpp"
#include "onced/sender.hpp"
#include "onced/worker.hpp"
#include "store/relay_queue.hpp"
#include "store/store_keeper.hpp"

namespace onced::runner {

// What this process has sent on. Each may be raised and read from any thread.
struct RelayCounters {
  using Counter = std::atomic<std::uint64_t>;

  Counter relayed{0};                    // messages that their destination has, once the row has left the relay
  Counter relay_refused{0};              // messages that it refused for good: dead letters here
  Counter relay_unknown_destinations{0}; // that messages wait for now and that are not configured; at most 64 are told
};

// Whether these can be sent on to. Errors: `usage` (a name that is none, or is there twice; too many).
[[nodiscard]] Result<void> check_relays(std::span<const RelayTarget> targets);

// Sends the messages of committed results on to their destinations as jobs, by a sender in memory for each: again until
// each has a final outcome, once at a time. A success takes the row out of the store; anything else that is final makes
// a dead letter of it. Where this process dies in between, the row is there and is sent again: its destination says
// `duplicate`. A destination that is away holds up no other. A message to one that is not configured stays in the
// store.
class Relay {
public:
  // Of `targets` that pass check_relays. All that it refers to must outlive it.
  Relay(const std::vector<RelayTarget> &targets, store::StoreKeeper &keeper, Clock &clock, Random &random,
        EventLog &log, RelayCounters &counters);
  ~Relay();
  Relay(const Relay &) = delete;
  Relay &operator=(const Relay &) = delete;

  // The relay's thread, until `stop`. Starts the senders' threads here, and ends them. A store that fails is reported
  // to its keeper, and gone on with once it is open again.
  void run();

  // Ends `run` at once: what is outstanding stays in the store. Any thread.
  void stop();

  // Messages may have come, or room for dead letters, or the store. Any thread; as StoreObserver::relayed, it does not
  // block.
  void wake();

private:
  struct Destination;

  [[nodiscard]] MonotonicTime work(bool look);
  [[nodiscard]] Result<void> work_on(store::RelayQueue &rows, Destination &destination);
  void start_sender(Destination &destination);
  void fail_sender(Destination &destination, const Error &error);
  void take_settled(Destination &destination);
  [[nodiscard]] Result<void> remove_delivered(store::RelayQueue &rows, Destination &destination);
  [[nodiscard]] Result<void> bury_refused(store::RelayQueue &rows, Destination &destination);
  [[nodiscard]] Result<void> submit_waiting(store::RelayQueue &rows, Destination &destination);
  void submit(Destination &destination, std::vector<store::RelayEntry> entries);
  [[nodiscard]] Result<void> look_for_unknown(store::RelayQueue &rows);
  [[nodiscard]] Result<void> check_read(const Error &error, std::string_view destination);
  void nudge(bool look);
  [[nodiscard]] bool is_stopping();

  store::StoreKeeper &keeper_;
  Clock &clock_;
  EventLog &log_;
  RelayCounters &counters_;

  std::mutex mutex_; // guards the next four
  std::condition_variable changed_;
  bool stopping_ = false;
  bool nudged_ = true; // there may be something to do
  bool look_ = true;   // and there may be rows that were not seen

  // The relay's thread only.
  bool looks_for_unknown_ = true;
  std::set<std::string> unknown_; // destinations that were warned of
  std::vector<std::unique_ptr<Destination>> destinations_;
};

} // namespace onced::runner
