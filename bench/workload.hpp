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
  std::vector<Bytes> jobs;           // the distinct ones
  std::vector<std::size_t> arrivals; // of each delivery in turn, the index of its job
  std::vector<Message> messages;
  std::size_t deliveries = 0;
  std::size_t distinct = 0;  // jobs among them that arrive; the other deliveries are byte-equal copies of one of these
  std::size_t job_bytes = 0; // of all deliveries
};

// `share` of the deliveries are duplicates of jobs chosen at random; all are shuffled. Sequences count from 1 in the
// order of sending, so the message of a sequence is found by division. The same seed gives the same bytes.
[[nodiscard]] Workload make_workload(std::size_t deliveries, double share, std::size_t per_message, std::uint64_t seed);

// A message of a workload as its sender sends it again: the same deliveries, a later attempt.
[[nodiscard]] Bytes encode_again(const Workload &workload, std::size_t message, std::uint32_t attempt);

struct TrafficPlan {
  std::size_t deliveries = 0;
  // Of the deliveries that are no conflicts. At 1 all are duplicates of jobs that were committed before.
  double duplicate_share = 0;
  double conflict_share = 0; // of all deliveries: another payload under the id of a job that was committed before
  std::size_t per_message = 256;
  std::uint64_t seed = 1;
};

// A workload, what must be committed before it is sent, and what must come out.
struct Traffic {
  Workload preload; // not measured; without deliveries where nothing need be there
  Workload measured;
  std::size_t stored = 0; // of the measured deliveries, by outcome
  std::size_t duplicates = 0;
  std::size_t conflicts = 0;
  std::size_t results = 0; // rows at the end, those of the preload included
  std::size_t dead_letters = 0;
};

// What is preloaded is at most this many jobs.
inline constexpr std::size_t preloaded_max = 10'000;

// Conflicts and the duplicates of a share of 1 are of preloaded jobs only, so that the counts do not depend on which of
// two deliveries is committed first. Without them it is the workload of make_workload.
[[nodiscard]] Traffic make_traffic(const TrafficPlan &plan);

} // namespace onced::bench
