#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "onced/digest.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "onced/store.hpp"
#include "store/rows/records.hpp"

// What becomes of one delivery. The order of verdicts is the same for a delivery and for a redrive: bytes that are no
// job; then what the key's row says; and only for an absent key type, schema and handler.
namespace onced::store {

// What is known of the row of a key.
struct KeyRow {
  enum class State : std::uint8_t { absent, present, damaged };
  State state = State::absent;
  Phase phase = Phase::committed;
  Digest digest;
  Bytes result;

  [[nodiscard]] bool is_committed() const { return state == State::present && phase == Phase::committed; }

  // Takes over what was found, reusing memory; bytes that are no row make it `damaged`.
  void read(const engine::Found &found, RecordDecoder &decoder);
};

// What a verdict says of a job whose handler has ended the process before.
enum class Suspicion : std::uint8_t {
  none,    // it is no suspect, or its handler was not to run
  cleared, // the handler has ended as it should
  upheld,  // it has ended the process too often, and did not run
};

struct Verdict {
  Settlement settlement;
  bool bury = false;                     // it is to be a dead letter, with the settlement's outcome as its reason
  std::optional<Digest> stored_digest;   // of the row that it conflicts with
  Phase stored_phase = Phase::committed; // of that row
  Suspicion suspicion = Suspicion::none;
  std::vector<RelayMessage> messages; // of the result that is to be stored
};

// Nothing was done, and why.
[[nodiscard]] Settlement busy(std::string_view detail, Branch branch = Branch::none);

[[nodiscard]] Verdict verdict_of_defect(std::string_view defect);
// The row is there, or about to be, or damaged: then `busy`, as nobody knows what it said.
[[nodiscard]] Verdict verdict_of_row(const KeyRow &row, const Key &key, const Digest &offered, Digester &digester);
// The key is absent: runs the handler. `stored`, with the result, when it is done; `accepted` where its type is queued.
[[nodiscard]] Verdict verdict_of_handler(const Job &job, const Handlers &handlers, JobParser &parser);
// The handler has ended the process so often that it is not run: `failed`.
[[nodiscard]] Verdict verdict_of_crashes(std::uint64_t crashes);

// The id of the dead letter that a delivery becomes. `key` is null where the bytes are no job.
[[nodiscard]] DeadLetterId dead_letter_id(const Key *key, const Digest &digest, BytesView bytes, Outcome reason,
                                          Digester &digester);

// The row of a job, ready to be encoded; it borrows all that it is given. A result only where it is committed.
[[nodiscard]] OperationRecord operation_record(Phase phase, const Job &job, const Digest &digest, BytesView result,
                                               WallTime issued_at, WallTime now, Durability durability);

} // namespace onced::store
