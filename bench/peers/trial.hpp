#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "drive.hpp"
#include "workload.hpp"

namespace onced::bench::peers {

// One run on an empty peer: what must be committed before, unmeasured, and then what is measured. Throws
// std::runtime_error where the answers or the rows are not exactly those of the traffic, or a conflict changed a row.
[[nodiscard]] Measured run_trial(Peer &peer, const Traffic &traffic, const Settings &settings);

// How many deliveries are unanswered at most where that is not fixed: those in hand where the client feeds the peer;
// where there is a queue, some more, so that nobody waits for the producer.
[[nodiscard]] std::size_t free_in_flight(const Settings &settings, bool has_queue);

// The settings that answer the most deliveries a second of traffic like `plan`: all are tried on short runs, the best
// few again on longer ones. `in_flight` 0: whatever is best. `plan.deliveries` bounds the length of a run.
[[nodiscard]] Settings find_best_settings(Peer &peer, const TrafficPlan &plan, std::size_t in_flight, bool has_queue);

// A file of settings is not there, is none, or lacks those of a peer.
struct NoSettings : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What sweeps have found, by peer, share of duplicates and how many deliveries may be unanswered (0: not fixed). In a
// file each is a line of JSON.
class FoundSettings {
public:
  struct Found {
    std::string peer;
    double share = 0;
    std::size_t in_flight_limit = 0;
    Settings settings;
  };

  // Throws NoSettings where a line is no such settings. A file that is not there is empty.
  [[nodiscard]] static FoundSettings read(const std::filesystem::path &file);
  // Replaces the file at once. Throws std::runtime_error where that cannot be done.
  void write(const std::filesystem::path &file) const;

  // Replaces those of the same peer, share and limit.
  void put(Found found);
  // Those of the nearest share that was swept, of two the lower. Throws NoSettings where the peer has none at the
  // limit.
  [[nodiscard]] const Found &nearest(std::string_view peer, double share, std::size_t in_flight_limit) const;

private:
  std::vector<Found> all_;
};

} // namespace onced::bench::peers
