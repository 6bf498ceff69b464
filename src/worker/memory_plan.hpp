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

// What a worker runs beside its gateway.
struct Threads {
  unsigned batch = 0;     // that take batches through to their outcomes
  unsigned executors = 0; // that run handlers
  unsigned relays = 0;    // senders to other workers
};

// Errors: `usage`, where so many senders cannot be given a message each in so little memory.
[[nodiscard]] Result<MemoryPlan> plan_memory(std::size_t memory_bytes, unsigned senders, const Threads &threads);

} // namespace onced::worker
