#pragma once

#include <cstdint>

namespace onced::store {

// Dead letters, queued jobs or messages to be sent on, and the bytes of the jobs in them.
struct RowAmount {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

} // namespace onced::store
