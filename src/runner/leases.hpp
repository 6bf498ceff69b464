#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/fencing_token.hpp"
#include "onced/random.hpp"

namespace onced::runner {

using onced::FencingToken;

// How the queued jobs of one type are leased.
struct LeaseOptions {
  std::string type;
  std::size_t concurrency = 1; // leases at once, at least 1
  std::chrono::milliseconds visibility_timeout{30'000};
  std::uint32_t max_receive_count = 5;     // at least 1
  std::chrono::milliseconds backoff{1000}; // the wait after the first receive; see Backoff
  std::chrono::milliseconds backoff_max{60'000};
  std::size_t jobs_max = 16'384; // in memory, leased ones included; at least `concurrency`
};

// The queued jobs of one worker, and which of them may be handed to a handler when. A pure state machine: the time is
// passed in; the store and the handlers are the caller's. One thread at a time; the times passed in must not go back.
// Every call costs O(log jobs), and some O(types) beside it.
//
//     add ──▶ waiting ──take──▶ starting ──started──▶ running ──forget──▶ forgotten: done, refused, unknown effect;
//               ▲                  │                     │                or expired with its
//               ├────give_back─────┘                     │                receives used up
//               └────────────retry, expired──────────────┘
//
// At most `jobs_max` jobs of a type are in memory. What is over that stays in the store, and comes later through
// `begin_refill`. Each type has its own places and its own leases, so none of them holds up another.
class Leases {
public:
  // `boot` is the boot count of the store's opening; it must be greater than that of any Leases before. No types of one
  // name. `random` is used only here, to seed the jitter.
  Leases(const std::vector<LeaseOptions> &types, std::uint64_t boot, Random &random);
  Leases(const Leases &) = delete;
  Leases &operator=(const Leases &) = delete;

  enum class Added : std::uint8_t {
    waiting,   // may be taken at once
    known,     // it is here already: nothing has changed
    full,      // stays in the store: its type has no place, or others of it stay there that came earlier
    exhausted, // not added: its receives are used up
    unhandled, // not added: no such type
  };

  // Adds a job that is in the store: new there, found there, or redriven. `receives` is what its budget, which a
  // redrive begins again, has used up; `accepted_at` is when it was accepted, on this clock.
  Added add(BytesView key, std::string_view type, std::uint32_t receives, MonotonicTime accepted_at, MonotonicTime now);

  // The types of which jobs were `full` and that have half of their places free by now, each named once: add the jobs
  // of them that the store holds, until one is `full` again, beginning where that ended the last time, so that each
  // comes to its turn. The names live as long as this.
  [[nodiscard]] std::vector<std::string_view> begin_refill();

  struct HandOver {
    FencingToken token;
    Bytes key;
    std::string_view type;      // lives as long as the Leases
    std::uint32_t receives = 0; // this one included
  };

  // Leases the job of this type that has waited longest, where one is due and a lease is free. The caller writes token
  // and receives to the job's row, fsynced, *before* a handler sees the job; then calls `started`, or `give_back` where
  // the handler could not be started. Until then the lease does not expire. Where the row is no longer there, the job
  // has ended: forget it.
  [[nodiscard]] std::optional<HandOver> take(std::string_view type, MonotonicTime now);
  // Whether the job is leased.
  [[nodiscard]] bool is_leased(BytesView key) const;

  // The handler runs: the visibility timeout begins. False: no such lease, and nothing has changed.
  bool started(const FencingToken &token, MonotonicTime now);

  // Why a handler was not started, and so who waits before the next attempt.
  enum class Obstacle : std::uint8_t {
    type, // no such command, no process, no store: the type waits, with backoff
    job,  // its former child may still run: the job waits, and its type goes on
  };

  // Takes back a lease that is not started: it has used up no receive, which the caller writes to the row again. (A
  // crash before that leaves it counted.) False as above.
  bool give_back(const FencingToken &token, Obstacle obstacle, MonotonicTime now);

  // The handler still runs: its visibility timeout begins anew. A lease lives until `expire` has named it, however late
  // that is called: until then nobody else has its job. False as above: the lease is lost.
  bool heartbeat(const FencingToken &token, MonotonicTime now);

  // The handler has ended, and what follows is about to be written: from here on the lease does not expire, however
  // long that takes. False as above: nothing is to be written.
  bool ended(const FencingToken &token);

  // Ends the lease. The job has ended, or is its owner's: it is not handed over again until it is added again. False as
  // above.
  bool forget(const FencingToken &token);
  // Ends the lease. The job waits for its next receive, with backoff: the caller has found that one is left. False as
  // above.
  bool retry(const FencingToken &token, MonotonicTime now);

  struct Expired {
    FencingToken token;
    Bytes key;
    std::string_view type;  // lives as long as the Leases
    bool exhausted = false; // forgotten, as its receives are used up; a dead letter. Otherwise it is due again
  };

  // Ends the leases whose visibility timeout has passed. Their handlers may still run: their settlements are stale.
  [[nodiscard]] std::vector<Expired> expire(MonotonicTime now);

  // Nothing is taken any more. What is leased goes on until it is forgotten, retried, given back or expires.
  void drain() { draining_ = true; }

  // When to call `expire` and `take` if nothing else happens; `now` when there is something to take. Nothing when only
  // another call can help.
  [[nodiscard]] std::optional<MonotonicTime> next_due(MonotonicTime now) const;

  struct Counters {
    std::size_t waiting = 0; // in memory
    std::size_t starting = 0;
    std::size_t running = 0;
    bool more_in_store = false; // some are known to be there only

    bool operator==(const Counters &) const = default;
  };
  // All zero for an unknown type.
  [[nodiscard]] Counters counters(std::string_view type) const;
  // When the oldest of its jobs was accepted, of all that were ever added and have not ended; nothing: there are none.
  [[nodiscard]] std::optional<MonotonicTime> oldest_since(std::string_view type) const;

private:
  enum class State : std::uint8_t { waiting, starting, running, ended };
  struct Type;
  struct Job {
    Type *type = nullptr;
    std::uint64_t place = 0; // the order in which the jobs came
    std::uint32_t receives = 0;
    State state = State::waiting;
    MonotonicTime timer; // waiting: due; running: expires
    MonotonicTime accepted_at;
  };
  using Jobs = std::map<Bytes, Job, std::less<>>; // iterators stay valid
  using Place = std::pair<MonotonicTime, std::uint64_t>;

  struct Type {
    explicit Type(const LeaseOptions &options);

    LeaseOptions options;
    Backoff backoff;
    std::map<Place, Jobs::iterator> waiting;
    std::multiset<MonotonicTime> accepted_at; // of those in memory
    std::optional<MonotonicTime> oldest_in_store;
    std::size_t starting = 0;
    std::size_t running = 0;         // those that have ended included
    std::uint32_t failed_starts = 0; // in a row
    MonotonicTime paused_until;
    bool more_in_store = false;
  };
  using Types = std::map<std::string, Type, std::less<>>; // addresses stay valid
  using Leased = std::map<std::uint64_t, Jobs::iterator>; // by the count of its token

  [[nodiscard]] static std::size_t places_taken(const Type &type);
  [[nodiscard]] static std::optional<MonotonicTime> next_take(const Type &type);
  [[nodiscard]] HandOver lease_first(Type &type);
  [[nodiscard]] Leased::iterator find(const FencingToken &token);
  void run_until(Leased::iterator lease, MonotonicTime expiry);
  void end_lease(Leased::iterator lease);
  void remove(Jobs::iterator job);
  void make_waiting(Jobs::iterator job, MonotonicTime due);

  std::uint64_t boot_;
  SeededRandom jitter_;
  std::uint64_t last_count_ = 0;
  std::uint64_t last_place_ = 0;
  bool draining_ = false;

  // Every job waits in its type or is in `leased_`, never both; those that run are in `expiries_` too.
  Types types_;
  Jobs jobs_;
  Leased leased_;
  std::map<Place, Leased::iterator> expiries_; // by time and count
};

} // namespace onced::runner
