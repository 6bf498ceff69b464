#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/fencing_token.hpp"
#include "onced/ids.hpp"
#include "onced/outcome.hpp"

namespace simulation {

enum class JobKind : std::uint8_t {
  pure,           // stored in the transaction that finds its key absent
  refused,        // its handler fails it; the key stays free
  queued,         // accepted first
  queued_refused, // accepted first, and failed by its handler
  garbage,        // no job at all
};

inline bool is_queued(JobKind kind) {
  return kind == JobKind::queued || kind == JobKind::queued_refused;
}

// How a lease of a queued job ends.
enum class Ending : std::uint8_t {
  done,
  refused,   // by its handler, for good
  try_again, //
  exhausted, // its handler failed, and its receives are used up
  expired,   // the lease has passed, and its receives are used up
};

// A job as its producer means it.
struct Job {
  std::uint8_t sender = 0;
  std::uint8_t key = 0;
  std::uint8_t intent = 0; // of this key: what a digest tells apart
  JobKind kind = JobKind::pure;
  onced::Bytes bytes;
  onced::Tag tag;
  onced::WallTime issued_at;
  onced::Sequence sequence{0}; // 0: not submitted
  bool told = false;           // its caller has been told a final outcome
};

// After which call of the store the ledger sees its rows.
struct Cause {
  enum class Kind : std::uint8_t {
    opening, // of the store, or a crash: a call of which nobody knew whether it was written
    batch,
    receive, // this and the next two: under the token
    give_back,
    settle,
    exhaust, // of a job that waits
  };
  Kind kind = Kind::opening;
  onced::FencingToken token{};
};

// What the rows of the worker's store have been, and so which final outcomes may be told. It throws `Broken` where a
// row changes, or an outcome is told, against a rule.
class Ledger {
public:
  static constexpr std::size_t keys_max = 8;

  enum class Phase : std::uint8_t { absent, pending, committed, failed };
  struct Row {
    Phase phase = Phase::absent;
    std::uint8_t intent = 0;
    std::size_t owner = 0;    // the job that made it
    std::uint64_t result = 0; // no two executions have the same
    onced::Bytes bytes;       // as they are stored

    // Of a queued job.
    bool leased = false;         // as far as is written
    onced::FencingToken token{}; // of the last hand-over
    std::uint32_t receives = 0;

    [[nodiscard]] bool is_leased_under(const onced::FencingToken &its_token) const {
      return phase == Phase::pending && leased && token == its_token;
    }
    bool operator==(const Row &) const = default;
  };

  explicit Ledger(std::size_t jobs) : letters_(jobs, false) {}

  [[nodiscard]] const Row &row(std::size_t key) const { return rows_[key]; }
  [[nodiscard]] std::uint64_t next_result() { return ++executions_; }

  // The row of a key as it is now. At most one unit has changed it since the last time.
  void observe(std::size_t key, Row now, const Cause &cause);
  // The job is a dead letter.
  void bury(std::size_t job) { letters_[job] = true; }

  [[nodiscard]] bool any_pending() const;

  // Whether this final outcome may be told of the job.
  void judge(const Job &job, std::size_t index, onced::Outcome outcome, std::uint64_t result) const;

private:
  static void check_change(const Row &before, const Row &now, const Cause &cause);
  static void check_pending(const Row &before, const Row &now);
  void judge_success(const Job &job, std::size_t index, bool stored, std::uint64_t result) const;

  std::array<Row, keys_max> rows_;
  std::vector<bool> letters_; // by job
  std::uint64_t executions_ = 0;
};

} // namespace simulation
