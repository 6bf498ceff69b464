#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace onced {

// What became of one delivery. The numbers are those of the wire and of the disk format, and never change.
// docs/protocol.md gives the cause of each and what a sender does; a test holds that table to this one.
enum class Outcome : std::uint8_t {
  stored = 0,    // this delivery committed the result
  duplicate = 1, // the same key and digest were committed before; the reply carries the original result
  conflict = 2,  // the key has a row with another digest; the job is a dead letter
  invalid = 3,   // the bytes are no valid job; the job is a dead letter
  failed = 4,    // the handler refused the job for good, or its receives are used up; the job is a dead letter
  expired = 5,   // the key is absent, and the job was issued before the retention horizon; the job is a dead letter
  accepted = 6,  // the worker has the queued job in custody; a final outcome follows
  busy = 7,      // nothing was done; the detail begins with one of busy_causes
};

// What a sender needs to know of an outcome beside its meaning.
struct OutcomeTraits {
  Outcome outcome;
  std::string_view name; // as in replies, logs and dead letters; a literal, which never changes
  bool final;            // true: the job is settled, and its sender forgets it
  bool success;          // true: the effect exists
};

// One row for each outcome, in the order of their codes.
inline constexpr std::array<OutcomeTraits, 8> outcome_table{{
    {Outcome::stored, "stored", true, true},
    {Outcome::duplicate, "duplicate", true, true},
    {Outcome::conflict, "conflict", true, false},
    {Outcome::invalid, "invalid", true, false},
    {Outcome::failed, "failed", true, false},
    {Outcome::expired, "expired", true, false},
    {Outcome::accepted, "accepted", false, false},
    {Outcome::busy, "busy", false, false},
}};

// Returns the row of an outcome. The row lives as long as the program. Any thread.
[[nodiscard]] constexpr const OutcomeTraits &traits_of(Outcome outcome) {
  return outcome_table[static_cast<std::size_t>(outcome)];
}

// Why nothing was done for a delivery.
inline constexpr std::array<std::string_view, 7> busy_causes{
    "the dead letters are at their cap",
    "the queue is at its cap",
    "the relay is at its cap",
    "too many bytes of dead letters at a time",
    "the stored row of this key is damaged",
    "other commits held the same keys for too long",
    "tag_mismatch", // the tag is not that of the bytes
};

// The outcome of a code read from outside, or nothing when this version does not know it.
// Returns the outcome of a code that was read from the wire or the disk. Returns nothing if this version does not know
// the code: a newer program wrote it, or the bytes are damaged.
[[nodiscard]] constexpr std::optional<Outcome> outcome_of_code(std::uint64_t code) {
  if (code >= outcome_table.size()) return std::nullopt;
  return outcome_table[code].outcome;
}

} // namespace onced
