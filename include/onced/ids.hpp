#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "onced/bytes.hpp"

namespace onced {

// An identifier of `Size` opaque bytes. `Name` only keeps two kinds of id from being mixed up.
template <class Name, std::size_t Size> struct OpaqueId {
  static constexpr std::size_t size = Size;
  std::array<std::uint8_t, Size> bytes{};

  auto operator<=>(const OpaqueId &) const = default; // NOLINT(modernize-use-nullptr): a 0 of the compiler's own

  [[nodiscard]] BytesView view() const { return {reinterpret_cast<const char *>(bytes.data()), Size}; }

  // Nothing unless `view` has exactly `Size` bytes.
  [[nodiscard]] static std::optional<OpaqueId> from(BytesView view) {
    if (view.size() != Size) return std::nullopt;
    OpaqueId id;
    view.copy(reinterpret_cast<char *>(id.bytes.data()), Size);
    return id;
  }
};

// Who sends: 16 random bytes, kept with the outbox. All zero: a message that named no sender. Who knows it can take the
// sender's replies away, so it is shown as `handle_of` (digest.hpp).
using SenderId = OpaqueId<struct SenderIdName, 16>;
// One opening of the store by a worker: 8 bytes of boot count (big-endian), then 8 random bytes.
using BootId = OpaqueId<struct BootIdName, 16>;
// Ties a reply to the bytes that were sent: the first 8 bytes of SHA-256 of the job.
using Tag = OpaqueId<struct TagName, 8>;
// A row of the dead letters (docs/storage.md).
using DeadLetterId = OpaqueId<struct DeadLetterIdName, 16>;
// SHA-256 of an intent (digest.hpp).
using Digest = OpaqueId<struct DigestName, 32>;

// Counts the jobs of one sender, from 1. Never used again for another job by the same sender id.
enum class Sequence : std::uint64_t {};

[[nodiscard]] constexpr std::uint64_t number_of(Sequence sequence) {
  return static_cast<std::uint64_t>(sequence);
}

// Lower-case hexadecimal, two characters a byte.
[[nodiscard]] std::string to_hex(BytesView bytes);

// Nothing unless `hex` is an even number of hexadecimal characters, of either case.
[[nodiscard]] std::optional<Bytes> from_hex(std::string_view hex);

} // namespace onced
