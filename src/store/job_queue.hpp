#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onced/handler.hpp"
#include "store/pool.hpp"
#include "store/row_changes.hpp"
#include "store/rows/queue_row.hpp"
#include "store/unit_of_work.hpp"

namespace onced::store {

// A row of the queue, without the job's bytes.
struct QueueEntry {
  Bytes key;
  QueueRow row;
};

// Which rows of the queue; an empty text is any.
struct QueueFilter {
  bool held_only = false;
  std::string_view type = {};
};

struct QueuePage {
  std::vector<QueueEntry> entries;
  std::optional<Bytes> next; // to go on after; nothing: there are no more
  std::uint64_t damaged = 0; // rows that cannot be read, and are not among the entries; `verify` names them
};

// What came of the wish to hand a job over.
struct Received {
  enum class Answer : std::uint8_t {
    job,   // it is leased under the token, and the receive is counted
    gone,  // it is settled, or was never queued
    held,  // its owner decides
    stale, // it has had a lease with this token or a greater one
    busy,  // its rows are damaged, or others hold its key for too long; `detail` says which
  };
  Answer answer = Answer::busy;
  std::string detail; // busy only
  Job job;            // this and the next only with a job
  QueueRow row;       // as it is now, without the job's bytes: its receives include this one
};

enum class QueueVerdict : std::uint8_t {
  done,      // with a result
  refused,   // for good
  exhausted, // as `try_again`, but its receives are used up
  try_again,
  unknown, // whether it had its effect: it is held, until its owner says
};

// What the end of a lease says of the job's effect outside, of which an earlier lease may have left nobody sure.
enum class QueueEffect : std::uint8_t {
  as_known, // nothing new
  unknown,  // it may have taken place
  absent,   // it has not: the provider was asked
};

// How a lease ends.
struct QueueEnding {
  QueueVerdict verdict = QueueVerdict::try_again;
  Bytes result = {};      // done: in canonical form, of at most limits::result_bytes_max
  std::string error = {}; // otherwise: why; kept with the job, cut to limits::queue_error_bytes_max
  QueueEffect effect = QueueEffect::as_known;
  std::vector<RelayMessage> messages = {}; // done: what the result sends on
  bool handed_over = true;                 // false: nothing was started for it, so that its receive is not used up
};

enum class QueueSettled : std::uint8_t {
  stale,     // the token is not that of the job's lease, or the job is gone: nothing has changed
  committed, // the result is there; the job has left the queue
  failed,    // it is a dead letter, and has left the queue
  waiting,   // it is to be handed over again
  held,      // its owner decides
  busy,      // nothing has changed: the dead letters or the relay are at their cap, its rows are damaged, or others
             // hold its key
};

// The queued jobs of a store, for who hands them to their handlers. When and to whom is not known here: only what must
// be on stable storage, and that a lease which has ended changes nothing any more. Each change is one transaction,
// synced in every mode. Any thread.
//
//     accepted ──▶ waiting ──begin_receive──▶ leased, or calling ──done──▶ committed
//                     ▲                             │
//                     ├────give_back, try_again─────┼──refused, exhausted──▶ failed: a dead letter ──redrive──▶ waiting
//                     │                             │
//                     └──resolved as absent── held ◀┘ unknown
//                                              └──────resolved as applied──▶ committed
class JobQueue {
public:
  JobQueue(StoreContext &context, Pool<UnitOfWork> &units) : context_(context), units_(units) {}
  JobQueue(const JobQueue &) = delete;
  JobQueue &operator=(const JobQueue &) = delete;

  // Up to `rows` rows in the order of their keys, from the one after `after`, which is empty at first. One that is
  // leased or calling under an older boot was left so by a crash. Errors: `store_unavailable`, `corrupt`.
  [[nodiscard]] Result<QueuePage> queued(BytesView after, std::size_t rows) const;
  // Those that the filter wants, of at most limits::queue_scanned_max that are looked at; so a page may be empty and
  // yet have a next one. Errors as above.
  [[nodiscard]] Result<QueuePage> find_queued(BytesView after, std::size_t rows, const QueueFilter &filter) const;
  [[nodiscard]] Result<QueuePage> held(BytesView after, std::size_t rows) const {
    return find_queued(after, rows, {.held_only = true});
  }
  // One row, with the job's bytes; nothing where there is none. Errors: `corrupt`: it is damaged; `store_unavailable`.
  [[nodiscard]] Result<std::optional<QueueRow>> find(BytesView key) const;

  // The jobs in it, whatever their state, and their bytes.
  [[nodiscard]] RowAmount depth() const { return context_.queue_room.taken(); }

  // Leases a job under a token greater than all before, and counts the receive: on stable storage before it returns, so
  // before a handler sees the job. A job of an external type is `calling` from here on, under its owner; where an
  // earlier call of it never settled, its effect is unknown.
  // Errors: `usage` (read-only); `store_unavailable`: as of Store::commit, and the job must not be handed over.
  [[nodiscard]] Result<Received> begin_receive(BytesView key, const FencingToken &token, const QueuedType &type);

  // Takes a lease back whose job was not handed over: the receive is not used up. `waiting`, `stale` or `busy`. Errors:
  // as above.
  [[nodiscard]] Result<QueueSettled> give_back(BytesView key, const FencingToken &token);

  // Ends the lease of this token. Errors: `usage` (read-only; the result has no canonical form or is too large; a
  // message cannot be sent on); `store_unavailable`: as of Store::commit, and whether it was settled is unknown.
  [[nodiscard]] Result<QueueSettled> settle(BytesView key, const FencingToken &token, const QueueEnding &ending);

  // Makes a dead letter of a job that waits: its receives are used up already, as fewer are allowed now. `failed`,
  // `busy`, or `stale` where it does not wait. Errors: as of `give_back`.
  [[nodiscard]] Result<QueueSettled> exhaust(BytesView key, std::string_view error);

private:
  [[nodiscard]] Result<QueuePage> page(BytesView after, std::size_t rows, const QueueFilter &filter,
                                       std::size_t scanned_max) const;
  // Whether a job in this state may be changed.
  using MayChange = bool (*)(const QueueRow &row, const FencingToken &token);
  // Puts what changes; `busy`: nothing may be written.
  using Change = std::function<QueueSettled(UnitOfWork &unit, LockedJob &locked)>;
  [[nodiscard]] Result<QueueSettled> change(BytesView key, const FencingToken &token, MayChange may_change,
                                            const Change &change);

  StoreContext &context_;
  Pool<UnitOfWork> &units_;
};

} // namespace onced::store
