#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

struct SenderOptions {
  std::string jobs_endpoint = "tcp://127.0.0.1:5570";      // the worker's PULL socket
  std::string replies_endpoint = "tcp://127.0.0.1:5571";   // the worker's ROUTER socket
  std::optional<SenderId> sender_id;                       // none: a random one
  std::chrono::milliseconds acknowledgement_timeout{1000}; // before the first resend; doubles with each attempt
  std::chrono::milliseconds acknowledgement_timeout_max{30'000};
  std::size_t window_jobs = limits::window_jobs_max;
  KillSwitch kill_switch;
};

// A job that has its final outcome, or was found to be over the limits by the sender itself.
struct Settled {
  Sequence sequence{0};
  Outcome outcome = Outcome::invalid;
  Bytes result;                              // canonical MessagePack; empty: none
  std::string detail;                        // empty: none
  std::uint32_t attempts = 0;                // times it was sent; 0: settled by the sender itself
  Durability durability = Durability::fsync; // the mode in which the worker said so
};

// Sends jobs until each has a final outcome: again when the acknowledgement is late, at once when the worker has
// started anew. Jobs are kept in memory, within limits::sender_jobs_max and sender_bytes_max; they die with the
// process. All calls may be made from any thread.
class Sender {
public:
  // Starts the sender's thread; connecting goes on in the background, for as long as it takes. `clock`, `random` and
  // `log` must outlive the sender. Errors: `endpoint` (malformed), `usage` (a window of 0).
  [[nodiscard]] static Result<std::unique_ptr<Sender>> start(const SenderOptions &options, Clock &clock, Random &random,
                                                             EventLog &log);

  // Stops at once; what is unsettled is forgotten.
  ~Sender();
  Sender(const Sender &) = delete;
  Sender &operator=(const Sender &) = delete;

  // Takes over one job, the MessagePack bytes of a map. Waits until `deadline` while the sender is full.
  // A job over limits::job_bytes_max is settled as `invalid` without being sent.
  // Errors: `timed_out`; `unsupported_protocol` once the worker has said so.
  [[nodiscard]] Result<Sequence> submit(Bytes job, MonotonicTime deadline);

  // The next settled job, in the order in which they settled; waits until `deadline`. Errors: as `submit`.
  [[nodiscard]] Result<Settled> next_settled(MonotonicTime deadline);

  // Jobs submitted and not yet settled.
  [[nodiscard]] std::size_t unsettled() const;

  [[nodiscard]] const SenderId &id() const;

private:
  class Impl;
  explicit Sender(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
