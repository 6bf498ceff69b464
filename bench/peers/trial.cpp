#include "trial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

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

nlohmann::ordered_json to_json(const FoundSettings::Found &found) {
  return {{"peer", found.peer},
          {"share", found.share},
          {"in_flight_limit", found.in_flight_limit},
          {"batch", found.settings.batch},
          {"connections", found.settings.connections},
          {"in_flight", found.settings.in_flight},
          {"look_first", found.settings.look_first}};
}

FoundSettings::Found from_json(const nlohmann::json &line) {
  FoundSettings::Found found{.peer = line.at("peer").get<std::string>(),
                             .share = line.at("share").get<double>(),
                             .in_flight_limit = line.at("in_flight_limit").get<std::size_t>(),
                             .settings = {.batch = line.at("batch").get<std::size_t>(),
                                          .connections = line.at("connections").get<unsigned>(),
                                          .in_flight = line.at("in_flight").get<std::size_t>(),
                                          .look_first = line.at("look_first").get<bool>()}};
  const Settings &settings = found.settings;
  if (settings.batch == 0 || settings.connections == 0 || settings.in_flight == 0 ||
      (found.in_flight_limit != 0 && settings.in_flight > found.in_flight_limit)) {
    throw std::runtime_error("its figures cannot be");
  }
  return found;
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

FoundSettings FoundSettings::read(const std::filesystem::path &file) {
  FoundSettings found;
  std::ifstream lines(file);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      found.put(from_json(nlohmann::json::parse(line)));
    } catch (const std::exception &error) {
      throw NoSettings(fmt::format("{}, line {}: no settings of a sweep: {}", file.string(), number, error.what()));
    }
  }
  return found;
}

void FoundSettings::write(const std::filesystem::path &file) const {
  const std::filesystem::path part = file.string() + ".part";
  std::ofstream lines(part);
  for (const Found &found : all_)
    lines << to_json(found).dump() << '\n';
  lines.close();
  if (!lines) throw std::runtime_error(part.string() + " cannot be written");
  std::filesystem::rename(part, file);
}

void FoundSettings::put(Found found) {
  const auto same = std::find_if(all_.begin(), all_.end(), [&](const Found &other) {
    return other.peer == found.peer && other.share == found.share && other.in_flight_limit == found.in_flight_limit;
  });
  if (same != all_.end()) {
    *same = std::move(found);
  } else {
    all_.push_back(std::move(found));
  }
}

const FoundSettings::Found &FoundSettings::nearest(std::string_view peer, double share,
                                                   std::size_t in_flight_limit) const {
  const Found *best = nullptr;
  for (const Found &found : all_) {
    if (found.peer != peer || found.in_flight_limit != in_flight_limit) continue;
    const double distance = std::abs(found.share - share);
    const double least = best == nullptr ? distance : std::abs(best->share - share);
    if (best == nullptr || distance < least || (distance == least && found.share < best->share)) best = &found;
  }
  if (best != nullptr) return *best;
  throw NoSettings(fmt::format("no sweep has found settings of {} at --in-flight {}", peer, in_flight_limit));
}

} // namespace onced::bench::peers
