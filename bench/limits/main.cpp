// What the machine and the parts give at most with the same bytes as onced's: a file that is appended to and synced, a
// bare ZeroMQ pipe, RocksDB without a guard, and the commit path without a transport. So that what onced reaches can be
// said as a share of these. A run whose counts are not exactly those that its seed gives is void, and the program then
// exits with 1. Where a limit is about new rows only, its duplicates cost nothing: with many of them nearly all rows
// are new in the first batches. It does not measure onced end to end, nor many writers of one file, nor a pipe with
// several senders.
#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/scratch_directory.hpp"
#include "held_signals.hpp"
#include "limit.hpp"
#include "measurement.hpp"
#include "number_options.hpp"
#include "onced/version.hpp"

namespace {

using onced::bench::add_versions;
using onced::bench::Row;
using onced::bench::limits::Measured;
using onced::bench::limits::Setting;
using std::chrono::nanoseconds;

constexpr int exit_void = 1;
constexpr int exit_usage = 64;

// Enough for the quantiles of one append: each costs a sync.
constexpr std::size_t single_deliveries_max = 5'000;

struct Limit {
  std::string_view name;
  Measured (*measure)(const Setting &);
  bool durable;   // each batch is on stable storage when it is done
  bool threaded;  // --threads applies; else one
  bool rows_only; // only new rows cost anything: without any there is nothing to measure
  bool single;    // always one new job a batch, whatever --shares and --batch say
};

constexpr std::array<Limit, 6> limits{{
    {"append", onced::bench::limits::measure_append, true, false, true, false},
    {"append-one", onced::bench::limits::measure_append, true, false, true, true},
    {"pipe", onced::bench::limits::measure_pipe, false, false, false, false},
    {"write-batch", onced::bench::limits::measure_write_batch, true, true, true, false},
    {"guard", onced::bench::limits::measure_guard, true, true, false, false},
    {"guard-parsed", onced::bench::limits::measure_guard_parsed, true, true, false, false},
}};

struct Options {
  std::vector<std::string> limits;
  std::vector<double> shares{0, 0.5, 0.9, 0.99, 1};
  std::vector<unsigned> threads{1, 2};
  std::size_t batch = 256;
  std::string transport = onced::bench::ipc;
  std::size_t deliveries = 200'000;
  std::uint64_t seed = 1;
  unsigned repeats = 3;
  std::filesystem::path directory = std::filesystem::temp_directory_path();
};

// One measured run.
struct Run {
  const Limit &limit;
  double share;
  unsigned threads;
  std::size_t batch;
  std::size_t deliveries;
};

void add_options(CLI::App &app, Options &options) {
  std::vector<std::string> names;
  names.reserve(limits.size());
  for (const Limit &limit : limits)
    names.emplace_back(limit.name);
  options.limits = names;
  app.add_option("--limits", options.limits, "What is measured")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember(names));
  app.add_option("--shares", options.shares, "Shares of duplicates; 1: all are of jobs that were committed before")
      ->delimiter(',')
      ->capture_default_str()
      ->check(onced::bench::decimal(0.0, 1.0));
  app.add_option("--batch", options.batch, "Deliveries a batch, and a message of the pipe")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 4096));
  app.add_option("--threads", options.threads, "Threads that write or commit, each its own batches")
      ->delimiter(',')
      ->capture_default_str()
      ->check(onced::bench::whole(1, 64));
  app.add_option("--transport", options.transport, "Of the pipe: ipc, a unix socket, or tcp over loopback")
      ->capture_default_str()
      ->check(CLI::IsMember({onced::bench::ipc, onced::bench::tcp}));
  app.add_option("--deliveries", options.deliveries, "Deliveries a run")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 1'000'000'000));
  app.add_option("--repeats", options.repeats, "Runs of each, all once before any again")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 1000));
  app.add_option("--seed", options.seed, "Of ids, numbers and order")
      ->capture_default_str()
      ->check(onced::bench::whole(0, UINT64_MAX));
  app.add_option("--directory", options.directory, "Its disk is measured; the data is removed at the end")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  app.footer("Examples:\n  limits\n  limits --limits guard,write-batch --shares 0 --threads 1 > rows.jsonl\n"
             "  limits --limits append-one --deliveries 2000\n  limits --deliveries 20000 --repeats 1");
}

// The runs of one repeat.
std::vector<Run> runs_of(const Options &options) {
  std::vector<Run> runs;
  for (const double share : options.shares) {
    for (const Limit &limit : limits) {
      const bool wanted = std::find(options.limits.begin(), options.limits.end(), limit.name) != options.limits.end();
      if (!wanted || limit.single || (limit.rows_only && share >= 1)) continue;
      for (const unsigned threads : limit.threaded ? options.threads : std::vector<unsigned>{1})
        runs.push_back({limit, share, threads, options.batch, options.deliveries});
    }
  }
  for (const Limit &limit : limits) {
    if (!limit.single) continue;
    if (std::find(options.limits.begin(), options.limits.end(), limit.name) == options.limits.end()) continue;
    runs.push_back({limit, 0, 1, 1, std::min(options.deliveries, single_deliveries_max)});
  }
  return runs;
}

double microseconds(nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Row quantile_us(std::vector<nanoseconds> &times, double share) {
  if (times.empty()) return nullptr;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + at, times.end());
  return microseconds(times[static_cast<std::size_t>(at)]);
}

Row setting_of(const Options &options, const Run &run, const onced::bench::Traffic &traffic, unsigned repeat) {
  return {{"bench", "limits"},
          {"limit", run.limit.name},
          {"share", run.share},
          {"batch", run.batch},
          {"threads", run.threads},
          {"durability", run.limit.durable ? Row("fsync") : Row(nullptr)},
          {"transport", options.transport},
          {"deliveries", traffic.measured.deliveries},
          {"distinct", traffic.stored},
          {"preloaded", traffic.preload.deliveries},
          {"repeat", repeat},
          {"seed", options.seed},
          {"job_bytes",
           static_cast<double>(traffic.measured.job_bytes) / static_cast<double>(traffic.measured.deliveries)}};
}

void add_figures(Row &row, const onced::bench::Traffic &traffic, Measured &measured) {
  const double seconds = std::chrono::duration<double>(measured.elapsed).count();
  const auto deliveries = static_cast<double>(traffic.measured.deliveries);
  const auto stored = static_cast<double>(traffic.stored);
  row["deliveries_per_second"] = deliveries / seconds;
  row["results_per_second"] = stored / seconds;
  row["cpu_us_per_delivery"] = microseconds(measured.cpu) / deliveries;
  row["row_bytes_per_result"] = nullptr;
  if (measured.row_bytes) row["row_bytes_per_result"] = static_cast<double>(*measured.row_bytes) / stored;
  row["batches_measured"] = measured.batches.size();
  row["batch_p50_us"] = quantile_us(measured.batches, 0.50);
  row["batch_p99_us"] = quantile_us(measured.batches, 0.99);
  row["batch_p999_us"] = quantile_us(measured.batches, 0.999);
}

std::string figure(const Row &value, int decimals) {
  return value.is_null() ? "-" : fmt::format("{:.{}f}", value.get<double>(), decimals);
}

void print_line(const Row &row) {
  fmt::print(stderr, "{:<13} {:>10g} {:>6} {:>4} {:>7} {:>13} {:>11} {:>8} {:>9} {:>9} {:>9}\n",
             row["limit"].get<std::string>(), row["share"].get<double>(), row["batch"].get<std::size_t>(),
             row["threads"].get<unsigned>(), row["repeat"].get<unsigned>(), figure(row["deliveries_per_second"], 0),
             figure(row["results_per_second"], 0), figure(row["cpu_us_per_delivery"], 2),
             figure(row["batch_p50_us"], 0), figure(row["batch_p99_us"], 0), figure(row["batch_p999_us"], 0));
}

void measure(const Options &options, const Run &run, unsigned repeat) {
  const auto traffic = onced::bench::make_traffic({.deliveries = run.deliveries,
                                                   .duplicate_share = run.share,
                                                   .conflict_share = 0,
                                                   .per_message = run.batch,
                                                   .seed = options.seed});
  const onced::ScratchDirectory directory(options.directory);
  Measured measured = run.limit.measure(
      {.traffic = traffic, .threads = run.threads, .transport = options.transport, .directory = directory.path()});
  Row row = setting_of(options, run, traffic, repeat);
  add_figures(row, traffic, measured);
  add_versions(row);
  fmt::print("{}\n", row.dump());
  std::fflush(stdout);
  print_line(row);
}

int measure_all(const Options &options) {
  const auto runs = runs_of(options);
  const auto version = onced::version();
  fmt::print(stderr, "{} runs: {} deliveries each, seed {}, data in {}, {} cores, onced {} {}, rocksdb {}\n",
             runs.size() * options.repeats, options.deliveries, options.seed, options.directory.string(),
             std::thread::hardware_concurrency(), version.number, version.build_type, version.libraries.front().second);
  fmt::print(stderr, "{:<13} {:>10} {:>6} {:>4} {:>7} {:>13} {:>11} {:>8} {:>9} {:>9} {:>9}\n", "limit", "duplicates",
             "batch", "thr", "repeat", "deliveries/s", "results/s", "CPU us", "p50 us", "p99 us", "p99.9 us");
  std::size_t done = 0;
  int exit_code = 0;
  try {
    for (unsigned repeat = 1; repeat <= options.repeats; ++repeat) {
      for (const Run &run : runs) {
        if (onced::bench::HeldSignals::pending()) throw std::runtime_error("told to stop");
        measure(options, run, repeat);
        ++done;
      }
    }
  } catch (const std::exception &error) {
    fmt::print(stderr, "limits: this run is void: {}\n", error.what());
    exit_code = exit_void;
  }
  fmt::print(stderr, "{} of {} runs done, the counts of each exact\n", done, runs.size() * options.repeats);
  return done > 0 ? exit_code : exit_void;
}

int run(int argc, char **argv) {
  const onced::bench::HeldSignals signals; // the first, so that it goes last
  Options options;
  CLI::App app("What the machine gives at most, with onced's bytes. A table on stderr, JSON lines on stdout.",
               "limits");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  return measure_all(options);
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "limits: %s\n", error.what());
    return 70;
  }
}
