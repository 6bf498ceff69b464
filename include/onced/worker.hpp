#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/event_log.hpp"
#include "onced/handler.hpp"
#include "onced/ids.hpp"
#include "onced/kill_point.hpp"
#include "onced/random.hpp"
#include "onced/store.hpp"

namespace onced {

// Knobs of the lab: what a bad network does to replies, done by the worker itself and repeated by a seed. Unset they
// cost nothing.
struct WorkerLab {
  double drop_share = 0;                     // 0 to 1: of the frames of replies, the share that is dropped
  std::chrono::milliseconds delay{0};        // how long every frame is held back, answers to queries included
  std::chrono::milliseconds delay_commit{0}; // how long each commit waits between its look-up and its transaction
  bool cut_heartbeats = false;               // of handlers: no lease is extended
  std::uint64_t seed = 0;
};

// A worker that messages of results are sent on to.
struct RelayTarget {
  std::string name;             // what RelayMessage::to says; 1 to limits::relay_name_bytes_max bytes of UTF-8
  std::string jobs_endpoint;    // its PULL socket
  std::string replies_endpoint; // its ROUTER socket
};

struct WorkerOptions {
  StoreOptions store;                                    // its kill_switch, counters and cache are set by the worker
  std::string jobs_endpoint = "tcp://127.0.0.1:5570";    // bound by a PULL socket
  std::string replies_endpoint = "tcp://127.0.0.1:5571"; // bound by a ROUTER socket
  unsigned threads = 2;                                  // worker threads, 1 to limits::worker_threads_max
  // What the process may take with so many senders at their worst, the store's cache included (docs/operations.md, with
  // what is outside of it): an eighth is the cache, and the rest bounds the messages that wait for each sender.
  std::size_t memory_bytes = std::size_t{512} * 1024 * 1024;
  unsigned senders = 64;
  // A group of the system, by name or number, whose members may operate the worker through its control socket, beside
  // the owner of the directory. Its members may enter the directory for that (mode 0710), and read nothing in it.
  // Empty: none.
  std::string operator_group;
  std::vector<RelayTarget> relays; // at most limits::relay_targets_max, each of another name
  // How long handlers run on after `drain` before they are signalled; then they have the grace period of their type.
  std::chrono::milliseconds drain_timeout{25'000};
  // The soft limit of open files (RLIMIT_NOFILE) of the commands of handlers; nothing: this process's own.
  std::optional<std::uint64_t> handler_descriptors_max;
  KillSwitch kill_switch;
  WorkerLab lab;
  // Is told each step of each delivery (docs/operations.md, Event streams); null: nobody. Must outlive the worker.
  EventLog *deliveries = nullptr;
};

// A running worker: it receives jobs, commits each result once, and replies. It owns its threads and sockets.
class Worker {
public:
  // Locks the directory, opens the store, binds the sockets and starts the threads, in this order, and returns once
  // jobs are being taken. The threads block all signals. `clock`, `random` and `log` must outlive the worker. Errors:
  // `usage`, `locked`, `endpoint`, `out_of_resources` (threads), and those of Store::open.
  [[nodiscard]] static Result<std::unique_ptr<Worker>> start(const WorkerOptions &options, Handlers handlers,
                                                             Clock &clock, Random &random, EventLog &log);

  // Drains, then waits for the threads.
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  // The endpoints really bound: ports in place of `*`.
  [[nodiscard]] const std::string &jobs_endpoint() const;
  [[nodiscard]] const std::string &replies_endpoint() const;
  [[nodiscard]] BootId boot() const;
  [[nodiscard]] Durability durability() const;

  // Stops reading; what was read is committed and its replies handed over, or left untouched. No more is handed to
  // handlers; those that run have the drain timeout to end by themselves. Returns at once. Any thread.
  void drain();

  // Waits until the worker has stopped: by `drain`, or because its store can only be opened again by a person. A store
  // that merely fails is opened again by the worker. Errors: `loss_suspected`, `corrupt`, `newer_format`, `locked`,
  // `internal`. One thread.
  [[nodiscard]] Result<void> wait();

private:
  class Impl;
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
