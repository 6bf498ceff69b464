#pragma once

#include <chrono>
#include <string>

#include "onced/error.hpp"
#include "workload.hpp"

namespace onced::bench {

// What one run through a worker gave.
struct Run {
  std::chrono::nanoseconds elapsed{};    // from the first send to the last reply
  std::chrono::nanoseconds worker_cpu{}; // of the worker process alone, in that time
  std::size_t stored = 0;
  std::size_t duplicates = 0;
  std::size_t others = 0;
  std::chrono::nanoseconds latency_p50{}; // of a delivery: from the send of its message to its reply
  std::chrono::nanoseconds latency_p99{};
};

struct Endpoints {
  std::string jobs;
  std::string replies;
};

// Sends the workload to the worker process `worker`, with at most `window` deliveries unanswered, and waits for every
// reply. Nothing is sent twice: a lost reply is a failed run. Errors: `endpoint`, `timed_out`.
[[nodiscard]] Result<Run> produce(const Workload &workload, const Endpoints &endpoints, int worker, std::size_t window,
                                  std::chrono::seconds patience);

} // namespace onced::bench
