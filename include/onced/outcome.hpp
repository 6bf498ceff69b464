#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace onced {

// What became of one delivery. The values are those of the wire and of the disk format, and never change.
// docs/protocol.md documents cause and action for each; a test holds that table to this one.
enum class Outcome : std::uint8_t {
  stored = 0,    // this delivery committed the result
  duplicate = 1, // same key and digest already committed; carries the original result
  conflict = 2,  // the key has a row with another digest; dead-lettered
  invalid = 3,   // the bytes are no valid job; dead-lettered
  failed = 4,    // the handler refused it for good, or its receives ran out; dead-lettered
  expired = 5,   // absent, and issued before the retention horizon; dead-lettered
  accepted = 6,  // durably in custody; a final outcome follows
  busy = 7,      // nothing was done; the detail begins with one of busy_causes
};

struct OutcomeTraits {
  Outcome outcome;
  std::string_view name;
  bool final;   // the sender forgets the job
  bool success; // the effect exists
};

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
[[nodiscard]] constexpr std::optional<Outcome> outcome_of_code(std::uint64_t code) {
  if (code >= outcome_table.size()) return std::nullopt;
  return outcome_table[code].outcome;
}

} // namespace onced
