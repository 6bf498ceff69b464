// End to end, through real processes: this one sends, a worker commits and replies. What is measured: deliveries and
// results a second, the CPU time of the worker alone, what it writes and syncs, and the latency of acknowledgements, by
// share of duplicates, deliveries a message, durability and worker threads. A run whose counts are not exactly those
// that its seed gives is void, and the program then exits with 1. It does not measure many senders at once, a network,
// or a database that is larger than memory.
#include <cstdio>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "held_signals.hpp"
#include "measurement.hpp"
#include "number_options.hpp"
#include "onced/version.hpp"
#include "table.hpp"

namespace {

using onced::bench::Label;
using onced::bench::Row;
using onced::bench::Series;

constexpr int exit_void = 1;
constexpr int exit_usage = 64;

// What is varied: each value of each with each of the others.
struct Grid {
  std::vector<double> shares{0, 0.5, 0.9, 0.99, 1};
  std::vector<std::size_t> per_message{256};
  std::vector<std::string> durabilities{"fsync"};
  std::vector<unsigned> workers{2};
  bool whole = false;
};

std::vector<onced::bench::Cell> cells_of(const Grid &grid) {
  std::vector<onced::bench::Cell> cells;
  cells.reserve(grid.shares.size() * grid.per_message.size() * grid.durabilities.size() * grid.workers.size());
  for (const double share : grid.shares) {
    for (const std::size_t per_message : grid.per_message) {
      for (const std::string &durability : grid.durabilities) {
        for (const unsigned workers : grid.workers)
          cells.push_back({share, per_message, durability, workers});
      }
    }
  }
  return cells;
}

void add_grid(CLI::App &app, Grid &grid) {
  app.add_option("--shares", grid.shares, "Shares of duplicates; 1: all are of jobs that were committed before")
      ->delimiter(',')
      ->capture_default_str()
      ->check(onced::bench::decimal(0.0, 1.0));
  app.add_option("--per-message", grid.per_message, "Deliveries a message")
      ->delimiter(',')
      ->capture_default_str()
      ->check(onced::bench::whole(1, 4096));
  app.add_option("--durability", grid.durabilities, "fsync, page-cache or both")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember({"fsync", "page-cache"}));
  app.add_option("--workers", grid.workers, "Worker threads")
      ->delimiter(',')
      ->capture_default_str()
      ->check(onced::bench::whole(1, 64));
  app.add_flag("--grid", grid.whole,
               "Every share with 1, 16, 64, 256 and 1024 a message, both durabilities, 1 and 2 workers");
}

void add_series(CLI::App &app, Series &series) {
  app.add_option("--onced", series.command, "The command to measure")->capture_default_str();
  app.add_option("--directory", series.directory, "Its disk is measured; the data is removed at the end")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  app.add_option("--transport", series.transport, "ipc: a unix socket; tcp: over loopback")
      ->capture_default_str()
      ->check(CLI::IsMember({onced::bench::ipc, onced::bench::tcp}));
  app.add_option("--deliveries", series.deliveries, "Deliveries a run")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 1'000'000'000));
  app.add_option("--in-flight,--window", series.in_flight, "Deliveries unanswered at most; a message has no more")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 1'000'000));
  app.add_option("--conflicts", series.conflict_share,
                 "This share carries another payload under an id that was committed before")
      ->capture_default_str()
      ->check(onced::bench::decimal(0.0, 0.5));
  app.add_option("--repeats", series.repeats, "Runs of each cell, all cells once before any again")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 1000));
  app.add_option("--seed", series.seed, "Of ids, numbers, order and schedule")
      ->capture_default_str()
      ->check(onced::bench::whole(0, UINT64_MAX));
  app.add_option("--drop-replies", series.dropped_replies_share,
                 "The worker loses this share of its frames of replies: what is unanswered for 2 s is sent again")
      ->capture_default_str()
      ->check(onced::bench::decimal(0.0, 0.9));
}

void add_schedule(CLI::App &app, Series &series, std::string &arrivals) {
  auto *rate = app.add_option("--rate", series.deliveries_per_second,
                              "Open loop: deliveries a second on a schedule, from which latency counts")
                   ->check(onced::bench::decimal(1e-6, 1e9));
  app.add_option("--load", series.loads, "Open loop at these shares of what the closed loop reached just before")
      ->delimiter(',')
      ->check(onced::bench::decimal(0.001, 10.0))
      ->excludes(rate);
  app.add_option("--arrivals", arrivals, "Intervals of the schedule: exponential (by seed) or fixed")
      ->capture_default_str()
      ->check(CLI::IsMember({"exponential", "fixed"}));
}

void print_setting(const Series &series) {
  const auto version = onced::version();
  fmt::print(
      stderr,
      "{} runs over {}: {} deliveries each, {} in flight, {:g} conflicts, seed {}, {} repeats, data in {}, {} cores\n"
      "onced {} {} {}, rocksdb {}\n",
      series.runs(), series.transport, series.deliveries, series.in_flight, series.conflict_share, series.seed,
      series.repeats, series.directory.string(), std::thread::hardware_concurrency(), version.number, version.commit,
      version.build_type, version.libraries.front().second);
}

// One JSON object a run on stdout; the table on stderr.
int measure(const Series &series) {
  print_setting(series);
  fmt::print(stderr, "{}", onced::bench::table_header(Label::cell));
  std::vector<Row> rows;
  const auto done = onced::bench::measure(series, [&](const Row &row) {
    rows.push_back(row);
    fmt::print("{}\n", row.dump());
    std::fflush(stdout);
    fmt::print(stderr, "{}", onced::bench::table_line(Label::cell, row));
  });
  if (!done) fmt::print(stderr, "throughput: {}\n", onced::describe(done.error()));
  if (series.repeats > 1 && !rows.empty()) {
    fmt::print(stderr, "\n{}{}", onced::bench::table_header(Label::cell),
               onced::bench::table_of_repeats(Label::cell, rows));
  }
  fmt::print(stderr, "{} of {} runs done, the counts of each exact\n", rows.size(), series.runs());
  return done ? 0 : exit_void;
}

int run(int argc, char **argv) {
  const onced::bench::HeldSignals signals; // the first, so that it goes last
  Series series;
  series.command = ONCED_COMMAND;
  Grid grid;
  std::string arrivals = "exponential";
  CLI::App app(
      "Duplicate-heavy throughput of a worker, through real processes. A table on stderr, JSON lines on stdout.",
      "throughput");
  add_grid(app, grid);
  add_series(app, series);
  add_schedule(app, series, arrivals);
  app.footer("Examples:\n  throughput\n  throughput --shares 0,0.99 --per-message 1,1024 --workers 1,2 > rows.jsonl\n"
             "  throughput --in-flight 1 --deliveries 2000\n  throughput --shares 0 --load 0.1,0.5,0.8\n"
             "  throughput --deliveries 20000 --repeats 1 --conflicts 0.01");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  if (grid.whole)
    grid = {.per_message = {1, 16, 64, 256, 1024}, .durabilities = {"fsync", "page-cache"}, .workers = {1, 2}};
  series.cells = cells_of(grid);
  series.exponential_arrivals = arrivals == "exponential";
  return measure(series);
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "throughput: %s\n", error.what());
    return 70;
  }
}
