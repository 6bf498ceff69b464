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

// Knobs of the lab: what a bad network does, done by the sender itself and repeated by a seed. Unset they cost nothing.
struct SenderLab {
  bool shuffle = false;            // the jobs of each message in random order
  double loss_share = 0;           // 0 to 1: of the sends of jobs, the share that is counted as sent and is not
  std::uint64_t seed = 0;          // of these two
  bool lose_first_replies = false; // the first reply to each job is thrown away, as if it had not arrived
};

struct SenderOptions {
  std::string jobs_endpoint = "tcp://127.0.0.1:5570";      // the worker's PULL socket
  std::string replies_endpoint = "tcp://127.0.0.1:5571";   // the worker's ROUTER socket
  std::optional<SenderId> sender_id;                       // none: the outbox's, or else a random one
  std::chrono::milliseconds acknowledgement_timeout{1000}; // before the first resend; doubles with each attempt
  std::chrono::milliseconds acknowledgement_timeout_max{30'000};
  std::chrono::milliseconds accepted_ask_again = limits::accepted_ask_again; // for the final outcome of a queued job
  std::size_t window_jobs = limits::window_jobs_max;

  std::filesystem::path outbox;                            // its directory, created when absent; empty: in memory
  std::uint64_t outbox_jobs_max = limits::outbox_jobs_max; // then `submit` waits
  std::uint64_t outbox_bytes_max = limits::outbox_bytes_max;
  bool outbox_accept_loss = false; // open it although jobs may be missing, and forget that they were there
  std::shared_ptr<StorageEnvironment> environment; // of the outbox; null: the operating system's

  SenderLab lab;
  KillSwitch kill_switch;
  // Is told each step of each delivery (docs/operations.md, Event streams); null: nobody. Must outlive the sender.
  EventLog *deliveries = nullptr;
  // Is called when a job has settled, and when the sender has failed, so that nobody has to wait in `next_settled`.
  // From any of its threads; it must not block, and not call the sender.
  std::function<void()> on_settled;
};

// A job that has its final outcome, or was found to be over the limits by the sender itself.
struct Settled {
  Sequence sequence{0};
  Outcome outcome = Outcome::invalid;
  Bytes result;                              // canonical MessagePack; empty: none
  std::string detail;                        // empty: none
  std::uint32_t attempts = 0;                // sends by this process; 0: settled by the sender itself
  Durability durability = Durability::fsync; // the mode in which the worker said so
  Bytes job;                                 // as it was submitted; only with an outbox, and only where it was sent
};

// Why a job is not settled yet, as far as its sender can tell. The names never change.
enum class UnsettledCause : std::uint8_t {
  no_worker,          // nobody listens at the endpoint
  no_answer,          // somebody listens there, and does not answer as a worker does
  not_a_worker,       // somebody there has ended the connection before it began: another kind of socket, as where the
                      // endpoints are exchanged, or another program
  worker_opening,     // the worker opens its store
  worker_full,        // the disk of the worker is full
  worker_unavailable, // the store of the worker has failed
  worker_draining,    // the worker is about to end
  no_reply,           // it is to be sent, or was sent, and no reply has come yet
  busy,               // the worker could not do it; the detail says why
  accepted, // the worker has it in durable custody, and tells its final outcome when it is there; the detail says
            // where it is, where the worker does
};

[[nodiscard]] std::string_view name_of(UnsettledCause cause);

struct Unsettled {
  UnsettledCause cause = UnsettledCause::no_reply;
  std::string endpoint; // that the cause is about; empty: none
  std::string detail;   // in the worker's words; empty: none
};

// For people.
[[nodiscard]] std::string describe(const Unsettled &unsettled);

// What a sender has seen so far.
struct SenderStats {
  std::uint64_t resumed = 0;         // jobs that the outbox had at the start, settled meanwhile or not
  std::uint64_t resends = 0;         // sends of a job beyond its first by this process
  std::uint64_t lost = 0;            // sends that SenderLab dropped
  std::uint64_t lost_replies = 0;    // replies that SenderLab threw away
  std::uint64_t ignored_replies = 0; // that fitted no job, or said `expired` without a horizon that bears it out
  std::uint64_t new_boots = 0;       // greetings of another boot than the one before
  // For each new boot, from the last word of the boot before it to the first job settled after its greeting; at most
  // limits::recoveries_kept_max, the latest.
  std::vector<std::chrono::milliseconds> recoveries;
};

// Sends jobs until each has a final outcome: again when the acknowledgement is late, at once when the worker has
// started anew. All calls may be made from any thread.
//
// In memory, jobs are kept within limits::sender_jobs_max and sender_bytes_max, and die with the process. With an
// outbox (docs/outbox.md) a submitted job survives the process and the machine, and every start goes on with what is
// left; memory stays within the same limits whatever the outbox holds. An outbox that reports an I/O error ends the
// sender: from then on its calls fail with `store_unavailable`. Start it again: what was kept is found out by that.
class Sender {
public:
  // Opens the outbox and starts the sender's thread; connecting goes on in the background, for as long as it takes.
  // `clock`, `random` and `log` must outlive the sender. Errors: `endpoint` (malformed); `usage` (a window of 0, a loss
  // share that is none, a directory that is a worker's, a sender id that is not the outbox's); `locked` (another
  // process has the outbox); `loss_suspected` (jobs that it took may be missing); `newer_format`, `corrupt`,
  // `store_unavailable` (of the outbox).
  [[nodiscard]] static Result<std::unique_ptr<Sender>> start(const SenderOptions &options, Clock &clock, Random &random,
                                                             EventLog &log);

  // Stops at once. In memory what is unsettled is forgotten; an outbox keeps it.
  ~Sender();
  Sender(const Sender &) = delete;
  Sender &operator=(const Sender &) = delete;

  // Takes over one job, the MessagePack bytes of a map: a batch of one, see below.
  [[nodiscard]] Result<Sequence> submit(Bytes job, MonotonicTime deadline);

  // Takes over a batch of jobs, all or none; returns their sequences in order. With an outbox they are on stable
  // storage, by one fdatasync, before it returns. Waits until `deadline` while the sender (with an outbox: the outbox)
  // is full. A job over limits::job_bytes_max is settled as `invalid` without being kept or sent. Errors: `timed_out`;
  // `usage`: a batch beyond limits::sender_jobs_max or sender_bytes_max; `unsupported_protocol` once the worker has
  // said so; `store_unavailable`: of this batch nothing is promised, though the next start may find it.
  [[nodiscard]] Result<std::vector<Sequence>> submit(std::vector<Bytes> jobs, MonotonicTime deadline);

  // The next settled job, in the order in which they settled; waits until `deadline`. Errors: `timed_out`, and those
  // that have ended the sender, once all that had settled is handed out.
  // A job leaves the outbox only with the next call of either of these, or with the destructor: then the caller has
  // dealt with the outcomes that it was given. So each is told at least once, even where the process dies in between.
  [[nodiscard]] Result<Settled> next_settled(MonotonicTime deadline);
  // At least one, and up to `jobs_max` where so many have settled.
  [[nodiscard]] Result<std::vector<Settled>> next_settled(MonotonicTime deadline, std::size_t jobs_max);

  // Jobs submitted and not yet settled, and those that the outbox had at the start.
  [[nodiscard]] std::size_t unsettled() const;

  // Why jobs do not settle: what keeps all of them, where something does, or else what keeps the first of them.
  [[nodiscard]] Unsettled why_unsettled() const;
  // The same for one job that was submitted and has not settled.
  [[nodiscard]] Unsettled why_unsettled(Sequence sequence) const;

  [[nodiscard]] SenderStats stats() const;

  [[nodiscard]] const SenderId &id() const;

private:
  class Impl;
  explicit Sender(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
