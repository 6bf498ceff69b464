#pragma once

#include <chrono>
#include <span>

#include "peer.hpp"

namespace onced::bench::peers {

struct Settings {
  std::size_t batch = 1024;  // deliveries settled at once by a connection
  unsigned connections = 2;  // that settle, each a thread
  std::size_t in_flight = 0; // deliveries unanswered at most
  bool look_first = false;   // read the rows of a batch, then store what is absent; else store at once
};

struct Measured {
  std::chrono::nanoseconds elapsed{}; // from the first delivery to the last answer
  std::chrono::nanoseconds server_cpu{};
  std::chrono::nanoseconds client_cpu{};
  Tally tally;
  std::chrono::nanoseconds latency_p50{}; // of a delivery: from when the client takes or queues it, to its answer
  std::chrono::nanoseconds latency_p99{};
  std::chrono::nanoseconds latency_p999{};
};

// Settles all deliveries, in order of their start, and measures. Throws what a connection threw.
[[nodiscard]] Measured drive(Peer &peer, std::span<const BytesView> deliveries, const Settings &settings);

} // namespace onced::bench::peers
