#pragma once

#include <atomic>
#include <cstdint>

namespace onced {

// What the stores of a process have counted, one after another. Each may be raised and read from any thread.
struct StoreCounters {
  using Counter = std::atomic<std::uint64_t>;

  Counter commits{0};     // transactions committed, those of redrives and purges included; duplicates need none
  Counter commit_us{0};   // time in them, microseconds: waiting for the log included
  Counter log_syncs{0};   // fdatasyncs of the log; commits at the same time share one
  Counter log_sync_us{0}; // time in them, microseconds
  Counter cache_hits{0};  // deliveries whose job was found in the cache of committed ones
};

} // namespace onced
