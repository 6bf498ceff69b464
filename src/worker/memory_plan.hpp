#pragma once

#include <cstddef>

#include "onced/error.hpp"

namespace onced::worker {

// How a worker shares out the memory that it may use (docs/operations.md, "Memory and descriptors").
struct MemoryPlan {
  std::size_t committed_cache_bytes = 0; // jobs committed or asked for lately
  std::size_t block_cache_bytes = 0;     // blocks, index and filters, memtables included
  int receive_high_water_messages = 0;   // that wait for each connection to the jobs socket
};

// Errors: `usage`, where so many senders cannot be given a message each in so little memory.
[[nodiscard]] Result<MemoryPlan> plan_memory(std::size_t memory_bytes, unsigned senders, unsigned threads,
                                             unsigned executors);

} // namespace onced::worker
