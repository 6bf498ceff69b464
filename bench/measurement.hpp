#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "onced/error.hpp"
#include "producer.hpp"
#include "transport.hpp"

namespace onced::bench {

// One measured run, as it is printed; docs/performance.md explains the fields.
using Row = nlohmann::ordered_json;

// The machine's cores, this build and its libraries, as every row of every benchmark names them.
void add_versions(Row &row);

// What is varied.
struct Cell {
  double duplicate_share = 0;
  std::size_t per_message = 256; // deliveries
  std::string durability = "fsync";
  unsigned workers = 2; // threads
};

// What is measured: each cell once, then each again, so that a slow minute of the machine falls on all of them.
struct Series {
  std::string command;                                                      // of onced
  std::filesystem::path directory = std::filesystem::temp_directory_path(); // for the data, which is removed
  std::string transport = ipc;                                              // transport.hpp
  std::size_t deliveries = 200'000;                                         // a run
  std::size_t in_flight = 8192; // deliveries unanswered; a message has no more
  double conflict_share = 0;
  double dropped_replies_share = 0; // by the worker, so that they are asked for again
  std::uint64_t seed = 1;
  unsigned repeats = 3;
  std::vector<Cell> cells;
  // Open loop, on a schedule: either at a rate, or at these shares of what the closed loop reached just before.
  std::optional<double> deliveries_per_second;
  std::vector<double> loads;
  bool exponential_arrivals = true;

  [[nodiscard]] std::size_t runs() const {
    return repeats * cells.size() * (deliveries_per_second ? 1 : 1 + loads.size());
  }
};

// Each run is a fresh worker in a process of its own. Ends at the first run that fails or whose counts are not exactly
// those of its seed. Errors: those of WorkerProcess and of produce; `internal`: the counts.
[[nodiscard]] Result<void> measure(const Series &series, const std::function<void(const Row &)> &on_row);

} // namespace onced::bench
