#pragma once

#include <compare>
#include <cstdint>

namespace onced {

// Names one lease of one queued job. Never used again: a later lease, of whatever job, has a greater token.
struct FencingToken {
  std::uint64_t boot = 0;  // the boot count of the store's opening; 0: no lease
  std::uint64_t count = 0; // of the leases of that boot, from 1

  auto operator<=>(const FencingToken &) const = default; // NOLINT(modernize-use-nullptr): a 0 of the compiler's own
};

} // namespace onced
