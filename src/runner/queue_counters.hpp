#pragma once

#include <atomic>
#include <cstdint>

namespace onced::runner {

// What a worker has counted of its queued jobs since it started. Each may be raised and read from any thread.
struct QueueCounters {
  using Counter = std::atomic<std::uint64_t>;

  Counter receives{0};    // jobs handed to a handler that started
  Counter handled{0};     // ended with a result
  Counter refused{0};     // ended as dead letters
  Counter tried_again{0}; // went back to the queue
  Counter held{0};        // of unknown effect, and left to their owner
  Counter not_started{0}; // hand-overs taken back, as the handler could not be started: no receive is used up
  Counter expired{0};     // leases that ended as nobody extended them
  Counter late{0};        // handlers that ended when their lease was lost: nothing of them was kept
  Counter reconciled{0};  // effects that reconcile knew of, applied or absent
};

} // namespace onced::runner
