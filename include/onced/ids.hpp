#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "onced/bytes.hpp"

namespace onced {

// An identifier of `Size` opaque bytes. `Name` only keeps two kinds of id apart. The default is all zeros. Ids compare
// byte by byte. An id owns its bytes, and threads may share it like any value.
template <class Name, std::size_t Size> struct OpaqueId {
  static constexpr std::size_t size = Size;
  std::array<std::uint8_t, Size> bytes{};

  auto operator<=>(const OpaqueId &) const = default; // NOLINT(modernize-use-nullptr): a 0 of the compiler's own

  // The bytes, as a view that is valid as long as this id.
  [[nodiscard]] BytesView view() const { return {reinterpret_cast<const char *>(bytes.data()), Size}; }

  // Copies the bytes. Returns nothing unless `view` has exactly `Size` bytes.
  [[nodiscard]] static std::optional<OpaqueId> from(BytesView view) {
    if (view.size() != Size) return std::nullopt;
    OpaqueId id;
    view.copy(reinterpret_cast<char *>(id.bytes.data()), Size);
    return id;
  }
};

// Who sends: 16 random bytes, kept with the outbox. All zero: the message named no sender. Anyone who knows the id can
// take the sender's replies away. So logs and answers show its handle instead (`handle_of`, digest.hpp).
using SenderId = OpaqueId<struct SenderIdName, 16>;
// One opening of the store by a worker: 8 bytes of boot count, big-endian, then 8 random bytes. A sender that is told
// another boot id sends every unsettled job again.
using BootId = OpaqueId<struct BootIdName, 16>;
// Ties a reply to the bytes that were sent: the first 8 bytes of SHA-256 of the job (`Digester::tag`).
using Tag = OpaqueId<struct TagName, 8>;
// Names a row of the dead letters. docs/storage.md says how it follows from the job.
using DeadLetterId = OpaqueId<struct DeadLetterIdName, 16>;
// SHA-256 of an intent (`Digester::intent`). Two jobs with the same key and digest are duplicates.
using Digest = OpaqueId<struct DigestName, 32>;

// Counts the jobs of one sender id, from 1. A sequence is never used for a second job. 0 stands for none.
enum class Sequence : std::uint64_t {};

// Returns the count as a number, for messages and rows.
[[nodiscard]] constexpr std::uint64_t number_of(Sequence sequence) {
  return static_cast<std::uint64_t>(sequence);
}

// Returns the bytes as lower-case hexadecimal, two characters a byte. Any bytes are safe. Any thread.
[[nodiscard]] std::string to_hex(BytesView bytes);

// Reads what `to_hex` writes, in either case. Returns nothing unless `hex` is an even number of hexadecimal characters.
// Any thread.
[[nodiscard]] std::optional<Bytes> from_hex(std::string_view hex);

} // namespace onced
