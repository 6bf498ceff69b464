#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/fencing_token.hpp"
#include "onced/ids.hpp"
#include "onced/store.hpp"

namespace onced::store {

enum class QueueState : std::uint8_t {
  waiting = 0, // to be handed to its handler
  leased = 1,  // handed over, or about to be
  calling = 2, // likewise, and its handler touches the outside: until it settles, nobody knows its effect
  held = 3,    // its effect is unknown, and its owner decides
};

[[nodiscard]] std::string_view name_of(QueueState state);

// One row of `queue`: a job in custody. The row of its key in `operations` is pending.
struct QueueRow {
  QueueState state = QueueState::waiting;
  bool effect_unknown = false; // an earlier receive may have had its effect
  Bytes bytes;                 // of the job, as they arrived first
  std::string operation_id;    // this and the next two as in the bytes
  std::string type;
  std::string effect_key;
  SenderId sender; // of the first delivery, as the next two
  Sequence sequence{0};
  WallTime issued_at;
  WallTime accepted_at;             // the worker's clock at the first delivery
  WallTime changed_at;              // and when the state last changed
  std::uint64_t receives = 0;       // that its budget, which a redrive begins again, has used up
  std::uint64_t receives_total = 0; // ever
  std::uint64_t redrives = 0;
  FencingToken token;              // of its last lease; zero: none yet
  std::string owner;               // who decides about its unknown effect; empty: nobody was named
  std::vector<std::string> errors; // the latest, oldest first; at most limits::queue_errors_kept_max
};

// Adds an error as text that fits, in the place of the oldest where there are too many. An empty one is none.
void keep_error(std::vector<std::string> &errors, std::string_view error);

// Where the job is, for people, in at most limits::detail_bytes_max bytes.
[[nodiscard]] std::string whereabouts_of(const QueueRow &row);
[[nodiscard]] std::string whereabouts_of_held(std::string_view owner);

// A queued job's first row.
[[nodiscard]] QueueRow queue_row_of(const Delivery &delivery, WallTime now);
// A row that goes on where a dead letter ends, with a budget of receives that begins again.
[[nodiscard]] QueueRow queue_row_of(const DeadLetter &letter, WallTime now);
// The dead letter of a queued job that has failed for good; its last error is the detail. Not yet its digest.
[[nodiscard]] DeadLetter letter_of(const DeadLetterId &id, const QueueRow &row, WallTime now);

} // namespace onced::store
