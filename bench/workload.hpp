#pragma once

#include <cstdint>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/ids.hpp"

namespace onced::bench {

// Deliveries of small `sum` jobs, packed into messages ahead of time, so that packing is not what is measured.
struct Workload {
  struct Message {
    Bytes bytes;
    std::size_t deliveries = 0;
  };
  SenderId sender;
  std::vector<Message> messages;
  std::size_t deliveries = 0;
  std::size_t distinct = 0;  // jobs among them; the other deliveries are byte-equal copies of one of these
  std::size_t job_bytes = 0; // of all deliveries
};

// `share` of the deliveries are duplicates of jobs chosen at random; all are shuffled. Sequences count from 1 in the
// order of sending, so the message of a sequence is found by division. The same seed gives the same bytes.
[[nodiscard]] Workload make_workload(std::size_t deliveries, double share, std::size_t per_message, std::uint64_t seed);

} // namespace onced::bench
