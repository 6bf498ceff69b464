#include "trial.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/core.h>

namespace onced::bench::peers {
namespace {

constexpr std::array<std::size_t, 6> batches{1, 16, 64, 256, 1024, 4096};
constexpr std::array<unsigned, 5> connection_counts{1, 2, 4, 8, 16};

// Short runs have this many rounds of batches, and the long ones eight times as many, within bounds.
constexpr std::size_t rounds = 8;
constexpr std::size_t long_factor = 8;
constexpr std::size_t short_deliveries_min = 256;
constexpr std::size_t short_deliveries_max = 32'768;
constexpr std::size_t finalists = 4;

std::vector<BytesView> deliveries_of(const Workload &workload) {
  std::vector<BytesView> deliveries;
  deliveries.reserve(workload.deliveries);
  for (const std::size_t job : workload.arrivals)
    deliveries.emplace_back(workload.jobs[job]);
  return deliveries;
}

void check(const Tally &tally, std::size_t rows, const Tally &expected, std::size_t expected_rows) {
  if (tally == expected && rows == expected_rows) return;
  throw std::runtime_error(fmt::format("this run is void: expected {} stored, {} duplicate, {} conflict, {} rows; the "
                                       "peer says {}, {}, {}, {}, and of its duplicates {} have another result",
                                       expected.stored, expected.duplicates, expected.conflicts, expected_rows,
                                       tally.stored, tally.duplicates, tally.conflicts, rows, tally.wrong));
}

std::vector<Settings> list_settings(std::size_t in_flight, bool has_queue) {
  std::vector<Settings> list;
  for (const unsigned connections : connection_counts) {
    std::vector<std::size_t> sizes(batches.begin(), batches.end());
    if (in_flight != 0) sizes.push_back(in_flight / connections);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const std::size_t batch : sizes) {
      if (batch == 0 || (in_flight != 0 && batch * connections > in_flight)) continue;
      Settings settings{.batch = batch, .connections = connections, .in_flight = in_flight};
      if (in_flight == 0) settings.in_flight = free_in_flight(settings, has_queue);
      list.push_back(settings);
    }
  }
  return list;
}

// The `keep` best of the list on runs of `factor` times the short length.
std::vector<Settings> best_of(Peer &peer, TrafficPlan plan, const std::vector<Settings> &list, std::size_t factor,
                              std::size_t keep) {
  const std::size_t most = plan.deliveries;
  std::vector<std::pair<double, Settings>> tried;
  tried.reserve(list.size());
  for (const Settings &settings : list) {
    const std::size_t length =
        std::clamp(settings.batch * settings.connections * rounds, short_deliveries_min, short_deliveries_max);
    plan.deliveries = std::min(most, length * factor);
    const Measured measured = run_trial(peer, make_traffic(plan), settings);
    tried.emplace_back(static_cast<double>(plan.deliveries) / std::chrono::duration<double>(measured.elapsed).count(),
                       settings);
  }
  std::sort(tried.begin(), tried.end(), [](const auto &left, const auto &right) { return left.first > right.first; });
  std::vector<Settings> best;
  for (std::size_t at = 0; at < std::min(keep, tried.size()); ++at)
    best.push_back(tried[at].second);
  return best;
}

} // namespace

Measured run_trial(Peer &peer, const Traffic &traffic, const Settings &settings) {
  peer.reset(settings.connections);
  const std::size_t preloaded = traffic.preload.deliveries;
  if (preloaded != 0) {
    const Measured before = drive(peer, deliveries_of(traffic.preload), settings);
    check(before.tally, peer.count_rows(), {.stored = preloaded}, preloaded);
  }
  const auto deliveries = deliveries_of(traffic.measured);
  Measured measured = drive(peer, deliveries, settings);
  const Tally expected{.stored = traffic.stored, .duplicates = traffic.duplicates, .conflicts = traffic.conflicts};
  check(measured.tally, peer.count_rows(), expected, traffic.results);
  if (traffic.conflicts != 0) { // the rows that were offered another payload are untouched
    const Measured after = drive(peer, deliveries_of(traffic.preload), settings);
    check(after.tally, peer.count_rows(), {.duplicates = preloaded}, traffic.results);
  }
  return measured;
}

std::size_t free_in_flight(const Settings &settings, bool has_queue) {
  return settings.batch * settings.connections * (has_queue ? 4 : 1);
}

Settings find_best_settings(Peer &peer, const TrafficPlan &plan, std::size_t in_flight, bool has_queue) {
  // The table is tried the one way that suits the share better; the finalists both ways.
  auto list = list_settings(in_flight, has_queue);
  for (Settings &settings : list)
    settings.look_first = plan.duplicate_share >= 0.5;
  std::vector<Settings> finals;
  finals.reserve(2 * finalists);
  for (Settings settings : best_of(peer, plan, list, 1, finalists)) {
    for (const bool look_first : {false, true}) {
      settings.look_first = look_first;
      finals.push_back(settings);
    }
  }
  return best_of(peer, plan, finals, long_factor, 1).front();
}

} // namespace onced::bench::peers
