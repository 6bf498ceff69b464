#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "onced/error.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/stage.hpp"
#include "rehearsal/time.hpp"

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
  std::string killed; // the kill that ended its worker or sender while it was in hand
  std::string log;
};

// The events of a stream, each with its line. A last line that a kill cut short is left out.
[[nodiscard]] std::vector<std::pair<Json, std::string>> events_of(const std::filesystem::path &stream);

// Joins the event streams of worker and senders, what was killed, and the rows, by publish time, then sender, sequence
// and attempt. The scenario's processes have ended. Errors: those of the store.
[[nodiscard]] Result<std::vector<Delivery>> join_deliveries(Stage &stage);

} // namespace onced::rehearsal
