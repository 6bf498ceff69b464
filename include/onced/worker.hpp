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

// Knobs of the lab, never for a worker in service. The worker itself does what a bad network does to replies, and a
// seed repeats it. Knobs that are not set cost nothing.
struct WorkerLab {
  double drop_share = 0;                     // 0 to 1: the share of reply frames that is dropped
  std::chrono::milliseconds delay{0};        // every frame is held back so long, answers to queries included
  std::chrono::milliseconds delay_commit{0}; // each commit waits so long between its look-up and its transaction
  bool cut_heartbeats = false;               // true: no lease of a handler is extended
  std::uint64_t seed = 0;                    // repeats the choices of drop_share
};

// Another worker, to which messages of results are sent on.
struct RelayTarget {
  std::string name;             // what RelayMessage::to names; 1 to limits::relay_name_bytes_max bytes of UTF-8
  std::string jobs_endpoint;    // its PULL socket
  std::string replies_endpoint; // its ROUTER socket
};

// How to run a worker. An endpoint is `tcp://HOST:PORT` or `ipc://PATH`; the port `*` is a free one.
struct WorkerOptions {
  StoreOptions store;                                    // the worker sets its kill_switch, counters and cache
  std::string jobs_endpoint = "tcp://127.0.0.1:5570";    // bound by a PULL socket
  std::string replies_endpoint = "tcp://127.0.0.1:5571"; // bound by a ROUTER socket
  unsigned threads = 2;                                  // worker threads, 1 to limits::worker_threads_max
  // Bytes that the process may take with `senders` senders at their worst, the store's cache included. An eighth is the
  // cache. The rest bounds the messages that wait for each sender. docs/operations.md, "Memory and descriptors", gives
  // the formula and what escapes it.
  std::size_t memory_bytes = std::size_t{512} * 1024 * 1024;
  unsigned senders = 64; // connections that memory_bytes is planned for
  // A group of the system, by name or number. Its members may operate the worker through its control socket, as the
  // owner of the directory may. They may enter the directory for that (mode 0710), and read nothing in it. Empty: no
  // group.
  std::string operator_group;
  std::vector<RelayTarget> relays; // at most limits::relay_targets_max, with different names
  // After `drain` handlers run on so long before they get a signal. Then they have the grace period of their type.
  std::chrono::milliseconds drain_timeout{25'000};
  // The soft limit of open files (RLIMIT_NOFILE) of handlers that are commands. Nothing: the limit of this process.
  std::optional<std::uint64_t> handler_descriptors_max;
  KillSwitch kill_switch; // for tests: kills the process at a step (kill_point.hpp)
  WorkerLab lab;
  // Gets each step of each delivery (docs/operations.md, "Event streams"). Null: nobody gets them. The caller owns it,
  // and it must outlive the worker.
  EventLog *deliveries = nullptr;
};

// A running worker. It receives jobs, commits each result once, and replies. It owns its threads, its sockets, its
// store and its handlers. One process may run several workers, each with a directory and endpoints of its own.
class Worker {
public:
  // Locks the directory, opens the store, binds the sockets and starts the threads, in this order. Returns once the
  // worker takes jobs. The threads block all signals. `clock`, `random` and `log` must outlive the worker. After an
  // error nothing runs and nothing is bound. Errors: `usage` (an option out of its range, or memory that does not
  // suffice), `locked` (another process has the directory), `endpoint` (cannot be
  // bound), `out_of_resources` (threads), and those of Store::open.
  [[nodiscard]] static Result<std::unique_ptr<Worker>> start(const WorkerOptions &options, Handlers handlers,
                                                             Clock &clock, Random &random, EventLog &log);

  // Drains, then waits for the threads: for as long as the drain timeout and the grace periods allow.
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  // Return the endpoints that are bound, with a port in place of `*`. They stay the same for the life of the worker.
  // Any thread.
  [[nodiscard]] const std::string &jobs_endpoint() const;
  [[nodiscard]] const std::string &replies_endpoint() const;
  // Returns the boot id of the first opening of the store. It does not change, although the boot does when a failed
  // store is opened again. Any thread.
  [[nodiscard]] BootId boot() const;
  // Returns what an acknowledgement of this worker promises, as in its options. Any thread.
  [[nodiscard]] Durability durability() const;

  // Begins to stop the worker, and returns at once. The worker stops reading. What it has read is committed and its
  // replies handed over, or left untouched. It hands nothing more to handlers; those that run have the drain timeout to
  // end by themselves. A second call changes nothing. Any thread, but no signal handler.
  void drain();

  // Waits until the worker has stopped: after `drain`, or because only a person can open its store again. The worker
  // itself opens a store again that merely fails, for as long as that takes. Only one thread may call it. Errors: why
  // the store cannot be opened (`loss_suspected`, `corrupt`, `newer_format`, `locked`), or `internal` after a thread
  // has failed.
  [[nodiscard]] Result<void> wait();

private:
  class Impl;
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
