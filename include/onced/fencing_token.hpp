#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "onced/ids.hpp"

namespace onced {

// Names one lease of one queued job. Never used again: a later lease, of whatever job, has a greater token.
struct FencingToken {
  std::uint64_t boot = 0;  // the boot count of the store's opening; 0: no lease
  std::uint64_t count = 0; // of the leases of that boot, from 1

  auto operator<=>(const FencingToken &) const = default; // NOLINT(modernize-use-nullptr): a 0 of the compiler's own
};

// 32 hexadecimal digits. Two texts compare as their tokens do.
[[nodiscard]] std::string text_of(const FencingToken &token);

// The boot count in an id of an opening: its first eight bytes, the most significant first.
[[nodiscard]] constexpr std::uint64_t boot_count_of(const BootId &boot) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < 8; ++at)
    count = count << 8U | boot.bytes[at];
  return count;
}

} // namespace onced
