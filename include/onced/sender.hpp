#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/event_log.hpp"
#include "onced/ids.hpp"
#include "onced/kill_point.hpp"
#include "onced/limits.hpp"
#include "onced/outcome.hpp"
#include "onced/random.hpp"
#include "onced/store.hpp"

namespace onced {

// Knobs of the lab, never for a sender in service. The sender itself does what a bad network does, and a seed repeats
// it. Knobs that are not set cost nothing.
struct SenderLab {
  bool shuffle = false;            // true: the jobs of each message go in random order
  double loss_share = 0;           // 0 to 1: the share of sends that is counted as sent and is not
  std::uint64_t seed = 0;          // repeats the choices of shuffle and loss_share
  bool lose_first_replies = false; // true: the first reply to each job is thrown away, as if it had not arrived
};

// How to run a sender. The endpoints are those of the worker: `tcp://HOST:PORT` or `ipc://PATH`.
struct SenderOptions {
  std::string jobs_endpoint = "tcp://127.0.0.1:5570";      // the worker's PULL socket
  std::string replies_endpoint = "tcp://127.0.0.1:5571";   // the worker's ROUTER socket
  std::optional<SenderId> sender_id;                       // none: that of the outbox, or a random one
  std::chrono::milliseconds acknowledgement_timeout{1000}; // before the first resend; it doubles with each attempt
  std::chrono::milliseconds acknowledgement_timeout_max{30'000};             // up to this
  std::chrono::milliseconds accepted_ask_again = limits::accepted_ask_again; // after `accepted`, for the final outcome
  std::size_t window_jobs = limits::window_jobs_max; // jobs in flight, at least 1; accepted and busy jobs do not count

  std::filesystem::path outbox; // its directory, created if absent; empty: jobs stay in memory
  std::uint64_t outbox_jobs_max = limits::outbox_jobs_max;   // jobs in the outbox; at the limit `submit` waits
  std::uint64_t outbox_bytes_max = limits::outbox_bytes_max; // bytes of jobs in it; at the limit `submit` waits
  bool outbox_accept_loss = false; // true: open an outbox from which jobs are missing, and forget the loss
  std::shared_ptr<StorageEnvironment> environment; // the files of the outbox; null: those of the operating system

  SenderLab lab;
  KillSwitch kill_switch; // for tests: kills the process at a step (kill_point.hpp)
  // Gets each step of each delivery (docs/operations.md, "Event streams"). Null: nobody gets them. The caller owns it,
  // and it must outlive the sender.
  EventLog *deliveries = nullptr;
  // The sender calls it when a job has settled, and when the sender has failed, so that nobody has to wait in
  // `next_settled`. The call comes from any thread of the sender. It must not block, and must not call the sender.
  std::function<void()> on_settled;
};

// A job with its final outcome. The sender itself settles a job that is over the limits, as `invalid`.
struct Settled {
  Sequence sequence{0};
  Outcome outcome = Outcome::invalid;
  Bytes result;                              // canonical MessagePack; empty: none
  std::string detail;                        // empty: none
  std::uint32_t attempts = 0;                // sends by this process; 0: settled by the sender itself
  Durability durability = Durability::fsync; // the mode of the worker that said so
  Bytes job; // as it was submitted; empty without an outbox, and if the job was never sent
};

// Why a job is not settled yet, as far as its sender can tell. docs/operations.md says what to do about each. The names
// never change.
enum class UnsettledCause : std::uint8_t {
  no_worker,          // nobody listens at the endpoint
  no_answer,          // somebody listens there and does not answer as a worker does
  not_a_worker,       // somebody there has ended the connection before it began: another program, or another kind of
                      // socket (the endpoints may be exchanged)
  worker_opening,     // the worker is opening its store
  worker_full,        // the disk of the worker is full
  worker_unavailable, // the store of the worker has failed
  worker_draining,    // the worker is about to end
  no_reply,           // the job is about to be sent, or was sent, and no reply has come yet
  busy,               // the worker could not do the job now; the detail says why
  accepted, // the worker has the queued job in custody, and sends its final outcome when there is one; the detail may
            // say where the job is
};

// Returns the name as it is written here, a literal. Any thread.
[[nodiscard]] std::string_view name_of(UnsettledCause cause);

// A cause, with what is known about it.
struct Unsettled {
  UnsettledCause cause = UnsettledCause::no_reply;
  std::string endpoint; // the endpoint that the cause is about; empty: none
  std::string detail;   // in the worker's words; empty: none
};

// Returns a sentence for people, with what to do. Any thread.
[[nodiscard]] std::string describe(const Unsettled &unsettled);

// What a sender has counted since its start.
struct SenderStats {
  std::uint64_t resumed = 0;         // jobs that the outbox had at the start, whether settled by now or not
  std::uint64_t resends = 0;         // sends of a job beyond its first by this process
  std::uint64_t lost = 0;            // sends that SenderLab dropped
  std::uint64_t lost_replies = 0;    // replies that SenderLab threw away
  std::uint64_t ignored_replies = 0; // replies that fitted no job, or said `expired` without a horizon that proves it
  std::uint64_t new_boots = 0;       // greetings of another boot than the one before
  // For each new boot: the time from the last message of the boot before it to the first job that settled after its
  // greeting. The latest limits::recoveries_kept_max are kept.
  std::vector<std::chrono::milliseconds> recoveries;
};

// Sends each job until it has a final outcome. It sends a job again when the acknowledgement is late, and all unsettled
// jobs at once when the worker has a new boot. Any thread may make any call.
//
// Without an outbox the sender keeps jobs in memory, within limits::sender_jobs_max and sender_bytes_max. They die with
// the process. With an outbox (docs/outbox.md) a submitted job survives the death of the process and of the machine,
// and every start goes on with the jobs that are left. Memory stays within the same limits, whatever the outbox holds.
// An I/O error of the outbox ends the sender: from then on its calls fail with `store_unavailable`. Start the sender
// again: the opening finds out which jobs are kept.
class Sender {
public:
  // Opens the outbox and starts the sender's thread. Connecting goes on in the background, for as long as it takes.
  // `clock`, `random` and `log` must outlive the sender. Errors: `endpoint` (an endpoint is malformed); `usage` (a
  // window of 0, a loss share out of its range, the directory of a worker, a sender id that is not that of the outbox);
  // `locked` (another process has the outbox); `loss_suspected` (jobs may be missing from the outbox); and of the
  // outbox `newer_format`, `corrupt` and `store_unavailable`.
  [[nodiscard]] static Result<std::unique_ptr<Sender>> start(const SenderOptions &options, Clock &clock, Random &random,
                                                             EventLog &log);

  // Stops at once. An outbox keeps the unsettled jobs; without one they are forgotten.
  ~Sender();
  Sender(const Sender &) = delete;
  Sender &operator=(const Sender &) = delete;

  // Takes over one job, the MessagePack bytes of a map, as a batch of one.
  [[nodiscard]] Result<Sequence> submit(Bytes job, MonotonicTime deadline);

  // Takes over a batch of jobs, all or none, and returns their sequences in order. With an outbox the jobs are on
  // stable storage, by one fdatasync, before it returns. It waits until `deadline` while the sender (or its outbox) is
  // full. A job over limits::job_bytes_max is settled as `invalid`, and neither kept nor sent. Errors: `timed_out`;
  // `usage` (a batch beyond limits::sender_jobs_max or sender_bytes_max); `unsupported_protocol` once the worker has
  // said so; `store_unavailable`: nothing is promised of this batch, and the next start may find it in the outbox or
  // not.
  [[nodiscard]] Result<std::vector<Sequence>> submit(std::vector<Bytes> jobs, MonotonicTime deadline);

  // Returns the next settled job, in the order in which jobs settled, and waits for one until `deadline`. The caller
  // owns it. Errors: `timed_out`; and, after all settled jobs are handed out, the error that has ended the sender. A
  // job leaves the outbox only with the next call of a `next_settled`, by any thread, or with the destructor. So make
  // that call after you have dealt with the outcomes that you were given. Each outcome is told at least once, even if
  // the process dies in between.
  [[nodiscard]] Result<Settled> next_settled(MonotonicTime deadline);
  // Returns at least one job, and up to `jobs_max` if so many have settled. Otherwise it does what the call for one
  // does.
  [[nodiscard]] Result<std::vector<Settled>> next_settled(MonotonicTime deadline, std::size_t jobs_max);

  // Returns the number of jobs that are not settled: those that were submitted, and those that the outbox had at the
  // start.
  [[nodiscard]] std::size_t unsettled() const;

  // Returns why jobs do not settle: what keeps all of them, or, if nothing does, what keeps the first.
  [[nodiscard]] Unsettled why_unsettled() const;
  // Returns why one job does not settle. It must have been submitted and not be settled.
  [[nodiscard]] Unsettled why_unsettled(Sequence sequence) const;

  // Returns a copy of the counts.
  [[nodiscard]] SenderStats stats() const;

  // Returns the sender id, which stays the same for the life of the sender.
  [[nodiscard]] const SenderId &id() const;

private:
  class Impl;
  explicit Sender(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
