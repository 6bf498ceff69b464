// What one would pick instead of onced: Redis, PostgreSQL and SQLite, with the same jobs in the same order, the same
// keys, digests and handler, and an fsync before each acknowledgement. What is measured: deliveries and results a
// second, CPU time of server and client, acknowledgement latency. A run whose answers or rows are not exactly those
// that its seed gives is void, and the program then exits with 1. It does not measure crashes, redelivery, dead
// letters, a network, or data larger than memory; README.md says what is not comparable.
#include <cstdio>
#include <optional>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/scratch_directory.hpp"
#include "held_signals.hpp"
#include "number_options.hpp"
#include "server.hpp"
#include "trial.hpp"

namespace {

using namespace onced::bench::peers;
using onced::bench::Traffic;
using onced::bench::TrafficPlan;

using Json = nlohmann::ordered_json;

constexpr int exit_void = 1;
constexpr int exit_usage = 64;
constexpr int exit_missing = 77;

struct Kind {
  std::string_view name;
  std::unique_ptr<Peer> (*make)(const std::filesystem::path &);
  bool has_queue;
};

constexpr std::array<Kind, 5> kinds{{{"redis-fed", make_redis_fed, false},
                                     {"redis-stream", make_redis_stream, true},
                                     {"postgresql-fed", make_postgresql_fed, false},
                                     {"postgresql-queue", make_postgresql_queue, true},
                                     {"sqlite", make_sqlite, false}}};

struct Options {
  std::vector<std::string> peers;
  std::vector<double> shares{0, 0.5, 0.9, 0.99, 1};
  double conflicts = 0;
  std::size_t deliveries = 200'000;
  unsigned repeats = 3;
  std::uint64_t seed = 1;
  bool sweep = false;
  Settings settings;
  std::filesystem::path settings_file; // empty: none
  std::filesystem::path directory = std::filesystem::temp_directory_path();
};

struct Started {
  const Kind &kind;
  std::unique_ptr<Peer> peer;
  std::string version;
};

// A peer with a share, and the settings that it is measured with.
struct Cell {
  Started &started;
  TrafficPlan plan;
  Settings settings;
  std::optional<double> settings_share; // at which a sweep found them
};

void add_options(CLI::App &app, Options &options) {
  std::vector<std::string> names;
  names.reserve(kinds.size());
  for (const Kind &kind : kinds)
    names.emplace_back(kind.name);
  options.peers = names;
  app.add_option("--peers", options.peers, "Which")->delimiter(',')->capture_default_str()->check(CLI::IsMember(names));
  app.add_option("--shares", options.shares, "Shares of duplicates; 1: all are of jobs that were committed before")
      ->delimiter(',')
      ->capture_default_str()
      ->check(onced::bench::decimal(0.0, 1.0));
  app.add_option("--conflicts", options.conflicts, "Share of deliveries with another payload under a known id")
      ->check(onced::bench::decimal(0.0, 0.5));
  app.add_option("--deliveries", options.deliveries, "Deliveries a run")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 1'000'000'000));
  app.add_option("--repeats", options.repeats, "Runs of each, all once before any again; 0: only the sweep")
      ->capture_default_str()
      ->check(onced::bench::whole(0, 1000));
  app.add_option("--seed", options.seed, "Of ids, numbers and order")
      ->capture_default_str()
      ->check(onced::bench::whole(0, UINT64_MAX));
  app.add_option("--directory", options.directory, "Its disk is measured; the data is removed at the end")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  app.footer("Examples:\n  peers --sweep\n  peers --sweep --in-flight 1 --deliveries 5000 --peers redis-fed,sqlite\n"
             "  peers --shares 0.9 --batch 256 --connections 4\n  peers --deliveries 20000 --repeats 1\n"
             "  peers --sweep --shares 0,0.9,0.99 --settings best.jsonl --repeats 0 && peers --settings best.jsonl");
}

void add_settings(CLI::App &app, Options &options) {
  app.add_flag("--sweep", options.sweep, "Find the best batch, connections and look-first for each peer and share");
  app.add_option("--in-flight", options.settings.in_flight, "Deliveries unanswered at most; 0: as the others ask for")
      ->capture_default_str()
      ->check(onced::bench::whole(0, 1'000'000));
  auto *file = app.add_option("--settings", options.settings_file,
                              "With --sweep: keep what it finds in this file, beside what others found. Without: "
                              "measure with what is in it, of the nearest share that was swept");
  app.add_option("--batch", options.settings.batch, "Without --sweep: deliveries settled at once by a connection")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 4096))
      ->excludes(file);
  app.add_option("--connections", options.settings.connections, "Without --sweep: connections that settle")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 32))
      ->excludes(file);
  app.add_flag("--look-first", options.settings.look_first, "Without --sweep: read a batch's rows before storing")
      ->excludes(file);
}

// Fixed settings, made to fit a fixed number of deliveries unanswered.
Settings fit(Settings settings, bool has_queue) {
  if (settings.in_flight == 0) {
    settings.in_flight = free_in_flight(settings, has_queue);
    return settings;
  }
  settings.connections = static_cast<unsigned>(std::min<std::size_t>(settings.connections, settings.in_flight));
  settings.batch = std::min(settings.batch, settings.in_flight / settings.connections);
  return settings;
}

// Before anything is measured: conflicts and duplicates are answered as such, in both ways of storing.
void check_contract(Started &started, std::uint64_t seed) {
  const Traffic traffic = onced::bench::make_traffic(
      {.deliveries = 600, .duplicate_share = 0.6, .conflict_share = 0.1, .per_message = 256, .seed = seed});
  for (const bool look_first : {false, true}) {
    (void)run_trial(
        *started.peer, traffic,
        fit({.batch = 64, .connections = 2, .in_flight = 0, .look_first = look_first}, started.kind.has_queue));
  }
}

std::vector<Started> start_peers(const Options &options, const onced::ScratchDirectory &folder) {
  std::vector<Started> started;
  started.reserve(kinds.size());
  for (const Kind &kind : kinds) {
    if (std::find(options.peers.begin(), options.peers.end(), kind.name) == options.peers.end()) continue;
    auto &one = started.emplace_back(Started{kind, kind.make(folder.path() / std::string(kind.name)), {}});
    one.version = one.peer->version();
    check_contract(one, options.seed);
  }
  return started;
}

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Json describe(const Cell &cell, std::size_t in_flight_limit, const Traffic &traffic, const Measured &measured,
              unsigned repeat) {
  const auto deliveries = static_cast<double>(traffic.measured.deliveries);
  const double seconds = microseconds(measured.elapsed) / 1e6;
  return {{"bench", "peers"},
          {"peer", cell.started.kind.name},
          {"has_queue", cell.started.kind.has_queue},
          {"share", cell.plan.duplicate_share},
          {"deliveries", traffic.measured.deliveries},
          {"distinct", traffic.stored},
          {"conflicts", traffic.conflicts},
          {"preloaded", traffic.preload.deliveries},
          {"batch", cell.settings.batch},
          {"connections", cell.settings.connections},
          {"in_flight", cell.settings.in_flight},
          {"in_flight_limit", in_flight_limit == 0 ? Json(nullptr) : Json(in_flight_limit)},
          {"look_first", cell.settings.look_first},
          {"settings_share", cell.settings_share ? Json(*cell.settings_share) : Json(nullptr)},
          {"repeat", repeat},
          {"seed", cell.plan.seed},
          {"durability", "fsync"},
          {"deliveries_per_second", deliveries / seconds},
          {"results_per_second", static_cast<double>(traffic.stored) / seconds},
          {"server_cpu_us_per_delivery", microseconds(measured.server_cpu) / deliveries},
          {"client_cpu_us_per_delivery", microseconds(measured.client_cpu) / deliveries},
          {"acknowledgement_p50_us", microseconds(measured.latency_p50)},
          {"acknowledgement_p99_us", microseconds(measured.latency_p99)},
          {"acknowledgement_p999_us", microseconds(measured.latency_p999)},
          {"version", cell.started.version}};
}

void print_header() {
  fmt::print(stderr, "{:>17} {:>6} {:>6} {:>5} {:>9} {:>5} {:>13} {:>11} {:>10} {:>10} {:>9} {:>9}\n", "peer", "share",
             "batch", "conn.", "in flight", "look", "deliveries/s", "results/s", "server us", "client us", "p50 us",
             "p99 us");
}

void print_row(const Json &row) {
  fmt::print("{}\n", row.dump());
  std::fflush(stdout);
  fmt::print(stderr,
             "{:>17} {:>5.0f}% {:>6} {:>5} {:>9} {:>5} {:>13.0f} {:>11.0f} {:>10.2f} {:>10.2f} {:>9.0f} {:>9.0f}\n",
             row["peer"].get<std::string>(), row["share"].get<double>() * 100, row["batch"].get<std::size_t>(),
             row["connections"].get<unsigned>(), row["in_flight"].get<std::size_t>(),
             row["look_first"].get<bool>() ? "first" : "no", row["deliveries_per_second"].get<double>(),
             row["results_per_second"].get<double>(), row["server_cpu_us_per_delivery"].get<double>(),
             row["client_cpu_us_per_delivery"].get<double>(), row["acknowledgement_p50_us"].get<double>(),
             row["acknowledgement_p99_us"].get<double>());
}

// Refuses a file that lacks settings, before any server is started.
FoundSettings read_settings(const Options &options) {
  if (options.settings_file.empty()) return {};
  auto found = FoundSettings::read(options.settings_file);
  for (const std::string &peer : options.sweep ? std::vector<std::string>{} : options.peers)
    (void)found.nearest(peer, 0, options.settings.in_flight);
  return found;
}

// Sets how a cell is measured; what a sweep finds is kept.
void choose_settings(Cell &cell, const Options &options, FoundSettings &found) {
  const Kind &kind = cell.started.kind;
  const double share = cell.plan.duplicate_share;
  const std::size_t limit = options.settings.in_flight;
  if (options.sweep) {
    fmt::print(stderr, "looking for the best settings of {} at {:g}%\n", kind.name, share * 100);
    cell.settings = find_best_settings(*cell.started.peer, cell.plan, limit, kind.has_queue);
    cell.settings_share = share;
    found.put({std::string(kind.name), share, limit, cell.settings});
    if (!options.settings_file.empty()) found.write(options.settings_file);
  } else if (!options.settings_file.empty()) {
    const auto &nearest = found.nearest(kind.name, share, limit);
    cell.settings = nearest.settings;
    cell.settings_share = nearest.share;
  } else {
    cell.settings = fit(options.settings, kind.has_queue);
  }
}

std::vector<Cell> plan_cells(const Options &options, std::vector<Started> &started, FoundSettings found) {
  std::vector<Cell> cells;
  cells.reserve(options.shares.size() * started.size());
  for (const double share : options.shares) {
    for (Started &one : started) {
      const TrafficPlan plan{.deliveries = options.deliveries,
                             .duplicate_share = share,
                             .conflict_share = options.conflicts,
                             .per_message = 256,
                             .seed = options.seed};
      choose_settings(cells.emplace_back(Cell{one, plan, {}, {}}), options, found);
    }
  }
  return cells;
}

int run(int argc, char **argv) {
  Options options;
  CLI::App app(
      "What one would pick instead, with the same work and durability. A table on stderr, JSON lines on stdout.",
      "peers");
  add_options(app, options);
  add_settings(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  FoundSettings found = read_settings(options);
  const onced::bench::HeldSignals held; // the servers are ended before a signal takes effect
  const onced::ScratchDirectory folder(options.directory);
  // Others may look through it: a server may run as another user.
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0711});
  auto started = start_peers(options, folder);
  const auto cells = plan_cells(options, started, std::move(found));
  print_header();
  std::size_t runs = 0;
  for (unsigned repeat = 1; repeat <= options.repeats; ++repeat) {
    for (const Cell &cell : cells) {
      const Traffic traffic = onced::bench::make_traffic(cell.plan);
      const Measured measured = run_trial(*cell.started.peer, traffic, cell.settings);
      print_row(describe(cell, options.settings.in_flight, traffic, measured, repeat));
      ++runs;
    }
  }
  fmt::print(stderr, "{} of {} runs exact: answers and rows are those of seed {}\n", runs,
             cells.size() * options.repeats, options.seed);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const NoSettings &error) {
    std::fprintf(stderr, "peers: %s; --sweep --settings FILE finds and keeps them\n", error.what());
    return exit_usage;
  } catch (const Missing &error) {
    std::fprintf(stderr, "peers: %s; tools/packages lists what is needed, in [peers]\n", error.what());
    return exit_missing;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "peers: %s\n", error.what());
    return exit_void;
  }
}
