#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/child_process.hpp"
#include "onced/error.hpp"
#include "workload.hpp"

namespace onced::bench {

// When messages are sent, whether the worker keeps up or not. A message of n deliveries takes n intervals.
struct Schedule {
  double deliveries_per_second = 0;
  bool exponential = true; // intervals as of independent senders, by seed; false: all the same
  std::uint64_t seed = 1;
};

struct ProducerOptions {
  std::size_t in_flight = 8192;      // deliveries unanswered at most; what is due beyond it waits in the producer
  std::optional<Schedule> schedule;  // nothing: a message is sent as soon as there is room in flight (closed loop)
  std::chrono::seconds patience{60}; // without any answer, while some are wanted
};

// What one run through a worker gave.
struct Run {
  std::chrono::nanoseconds elapsed{};    // from the first send to the last reply
  std::chrono::nanoseconds worker_cpu{}; // of the worker process alone, in that time
  std::optional<std::uint64_t> worker_written_bytes;
  std::size_t stored = 0; // deliveries by the outcome of their first answer
  std::size_t duplicates = 0;
  std::size_t conflicts = 0;
  std::size_t others = 0;
  std::size_t resent = 0; // deliveries in messages that were sent again, as no answer had come for 2 s
  // Of a delivery, to its first answer: from when its message was first sent or, on a schedule, was due.
  std::chrono::nanoseconds latency_p50{};
  std::chrono::nanoseconds latency_p99{};
  std::chrono::nanoseconds latency_p999{};
};

struct Endpoints {
  std::string jobs;
  std::string replies;
};

// Sends the workload to the worker process `worker`, a child, and waits until every delivery is answered.
// Errors: `endpoint`; `timed_out`: no answers, the worker has ended, or a signal waits (held_signals.hpp).
[[nodiscard]] Result<Run> produce(const Workload &workload, const Endpoints &endpoints, const ChildProcess &worker,
                                  const ProducerOptions &options);

} // namespace onced::bench
