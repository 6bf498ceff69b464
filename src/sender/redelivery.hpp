#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/ids.hpp"
#include "onced/limits.hpp"
#include "onced/outcome.hpp"
#include "onced/random.hpp"
#include "onced/sender.hpp"
#include "onced/store.hpp"

namespace onced {

struct RedeliveryOptions {
  std::size_t jobs_max = limits::sender_jobs_max; // unsettled
  std::size_t bytes_max = limits::sender_bytes_max;
  std::size_t window_jobs_max = limits::window_jobs_max; // in flight
  std::size_t window_bytes_max = limits::window_bytes_max;
  std::chrono::milliseconds acknowledgement_timeout{1000}; // see Backoff
  std::chrono::milliseconds acknowledgement_timeout_max{30'000};
  std::chrono::milliseconds accepted_ask_again = limits::accepted_ask_again;
};

// The unsettled jobs of one sender, and what to send when. A pure state machine: the time is passed in, sending is the
// caller's. One thread at a time; the times passed in must not go back. Every call but a greeting costs O(log n).
//
//     add ──▶ due ──sent──▶ in flight ──accepted, busy──▶ waiting
//              ▲                │ timed out                  │ timed out
//              └────────────────┴──────── new boot ──────────┘        a final outcome, in any state but
//                                                                     never sent: settled, and forgotten
//
// Only jobs in flight fill the window. One that times out leaves it, and as the oldest due job goes first, it enters
// again before any newer one: a slow worker slows the producer.
class Redelivery {
public:
  // A window of no jobs or no bytes is a broken invariant. `random` is used only here, to seed the jitter.
  Redelivery(const RedeliveryOptions &options, Random &random);

  // Whether a job of so many bytes can be added: it keeps within jobs_max and bytes_max, and fits the window at all.
  [[nodiscard]] bool has_room(std::size_t job_bytes) const;

  // Jobs and bytes that can still be added, where no job is larger than the window.
  struct Room {
    std::size_t jobs = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] Room room() const { return {options_.jobs_max - jobs_.size(), options_.bytes_max - counters_.bytes}; }

  // Takes over a job, which becomes due. It must have room.
  Sequence add(Bytes job, const Tag &tag, WallTime issued_at);

  // The same for a job that has its sequence already, from an outbox, where no unsettled job has it.
  void restore(Sequence sequence, Bytes job, const Tag &tag, WallTime issued_at);

  // Uses up a sequence, for a job that its sender settles without sending.
  Sequence take_sequence();

  // The worker has greeted. Before the first greeting nothing is due. A boot id other than the last one makes every
  // unsettled job due at once, as what was in the pipes may be lost, and begins the backoff anew; costs O(n). The same
  // boot id changes nothing. `horizon`: of the worker, so that `expired` may be true of jobs issued before it; nothing:
  // it has none.
  void on_greeting(const BootId &boot, MonotonicTime now, std::optional<WallTime> horizon = std::nullopt);

  // A job to be sent now. The views are valid until the job settles.
  struct DueJob {
    Sequence sequence{0};
    Tag tag;
    std::uint32_t attempt = 0; // that this send will be
    WallTime issued_at;
    BytesView job;
  };

  // The oldest due jobs, in the order of their sequences, as many as the window has room for: at most `jobs_max`, and
  // `bytes_max` bytes of jobs unless the first alone is larger. Counts nothing: call `sent` for those handed over. What
  // was not handed over stays due, so a caller that cannot send must wait for that, not for `next_due`.
  [[nodiscard]] std::vector<DueJob> due(MonotonicTime now, std::size_t jobs_max, std::size_t bytes_max);

  // These were handed over: counts their attempts and starts their acknowledgement timeouts. They are all or some of
  // what `due` returned last, and nothing else was called in between.
  void sent(std::span<const DueJob> jobs, MonotonicTime now);

  // One entry of a message of replies. Borrowed during the call.
  struct Reply {
    Sequence sequence{0};
    Tag tag;
    Outcome outcome = Outcome::busy;
    BytesView result;                          // empty: none
    std::string_view detail;                   // empty: none
    Durability durability = Durability::fsync; // of the message
  };

  enum class ReplyEffect : std::uint8_t {
    settled, // a final outcome: the job is forgotten; its bytes are in `Settled::job`
    waiting, // accepted or busy: the job waits outside the window before it is sent again
    ignored, // no unsettled job of this sequence and tag was ever sent; or it is `expired`, and no horizon that the
             // worker has greeted with bears that out of the job's own issue time
  };

  struct ReplyResult {
    ReplyEffect effect = ReplyEffect::ignored;
    std::optional<Settled> settled; // where the effect is `settled`
  };

  // Applies a reply, however late, in whatever state its job is. A job that already waits keeps the earlier of its two
  // timers, so that repeated replies cannot put it off for ever.
  ReplyResult on_reply(const Reply &reply, MonotonicTime now);

  // What the worker has said last of an unsettled job, while that holds: of `accepted`, until another reply; of `busy`,
  // until it is sent again.
  struct Said {
    Outcome outcome = Outcome::busy;
    std::string detail; // its beginning
  };
  [[nodiscard]] std::optional<Said> last_said(Sequence sequence) const;
  // The one with the lowest sequence. O(n).
  [[nodiscard]] std::optional<Sequence> first_unsettled() const;

  // When to call `due` again if nothing else happens: until then it returns nothing. `now` when it would return jobs;
  // nothing when only a greeting, a reply or another job can help.
  [[nodiscard]] std::optional<MonotonicTime> next_due(MonotonicTime now) const;

  struct Counters {
    std::size_t unsettled = 0; // jobs due, in flight and waiting
    std::size_t in_flight = 0;
    std::size_t waiting = 0;
    std::size_t accepted = 0; // of the unsettled, those in custody of the worker, as it has said
    std::size_t bytes = 0;    // of unsettled jobs
    std::size_t in_flight_bytes = 0;
    std::uint64_t resends = 0; // sends of a job beyond its first
    std::uint64_t ignored_replies = 0;
  };
  [[nodiscard]] Counters counters() const;

private:
  enum class State : std::uint8_t { due, in_flight, waiting };

  struct Job {
    Bytes bytes;
    Tag tag;
    WallTime issued_at;
    State state = State::due;
    std::uint32_t attempts = 0;
    std::uint32_t attempts_before_boot = 0; // made to earlier boots; the backoff counts the others
    MonotonicTime timer;                    // in flight and waiting
    std::optional<Said> said;
  };
  using Jobs = std::unordered_map<std::uint64_t, Job>;

  [[nodiscard]] bool is_borne_out(Outcome outcome, const Job &job) const;
  void note_said(Job &job, const Reply &reply);
  [[nodiscard]] bool window_admits(std::size_t jobs, std::size_t bytes) const;
  [[nodiscard]] MonotonicTime::duration backoff_of(const Job &job);
  void leave_state(std::uint64_t number, const Job &job);
  void make_due(std::uint64_t number, Job &job);
  void make_timed(std::uint64_t number, Job &job, State state, MonotonicTime timer);
  void wait_for(std::uint64_t number, Job &job, Outcome outcome, MonotonicTime now);
  void expire_timers(MonotonicTime now);

  RedeliveryOptions options_;
  Backoff backoff_;
  SeededRandom jitter_; // its own, so that a send costs no system call for randomness
  std::optional<BootId> boot_;
  std::optional<WallTime> horizon_; // of the worker that greeted last
  std::uint64_t last_sequence_ = 0;

  // Every job is in `due_` or has one timer, never both.
  Jobs jobs_;
  std::set<std::uint64_t> due_;
  std::set<std::pair<MonotonicTime, std::uint64_t>> timers_;
  Counters counters_; // `unsettled` is left to jobs_
};

} // namespace onced
