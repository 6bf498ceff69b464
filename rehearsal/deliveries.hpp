#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rehearsal/time.hpp"
#include "rehearsal/traces.hpp"

namespace onced::rehearsal {

// One delivery of a scenario, as worker and sender told of it.
struct Delivery {
  std::size_t stream = 0; // of which sender process
  std::string operation_id;
  std::string tag;
  std::string sender;
  std::uint64_t sequence = 0;
  std::uint64_t attempt = 0;
  Micros published = 0; // 0 in these: not
  Micros consumed = 0;
  Micros settled = 0;
  Micros committed = 0;
  Micros acknowledged = 0;
  std::string outcome;
  std::string final_outcome; // of an accepted one: what a reply to it has told after that
  std::string killed;        // the kill that ended its worker or sender while it was in hand
  std::string log;
  std::string consumed_log; // the line by which the worker told that it took it
};

// Joins what was told, killed and committed, by publish time, then sender, sequence and attempt.
[[nodiscard]] std::vector<Delivery> join_deliveries(const Traces &traces);

} // namespace onced::rehearsal
