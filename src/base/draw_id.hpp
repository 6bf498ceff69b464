#pragma once

#include <cstddef>
#include <cstdint>

#include "onced/random.hpp"

namespace onced {

// An id whose bytes are all drawn: of a store, an outbox or a sender.
template <class Id> [[nodiscard]] Id draw_id(Random &random) {
  static_assert(Id::size % sizeof(std::uint64_t) == 0);
  Id id;
  for (std::size_t begin = 0; begin < Id::size; begin += sizeof(std::uint64_t)) {
    std::uint64_t bits = random.next();
    for (std::size_t at = 0; at < sizeof bits; ++at, bits >>= 8U)
      id.bytes[begin + at] = static_cast<std::uint8_t>(bits);
  }
  return id;
}

} // namespace onced
