// End to end, through real processes: this one sends, a worker commits and replies. What is measured: deliveries a
// second, the CPU time of the worker alone for a delivery, and the latency of acknowledgements, by share of duplicates.
// A run whose counts are not exactly those that its seed gives is void, and the program then exits with 1.
#include <cstdio>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "onced/version.hpp"
#include "producer.hpp"
#include "worker_process.hpp"
#include "workload.hpp"

namespace {

using onced::Result;
using onced::bench::Run;
using onced::bench::Workload;

struct Options {
  std::string command = ONCED_COMMAND;
  std::size_t deliveries = 200'000;
  std::vector<double> shares{0, 0.5, 0.9, 0.99};
  std::size_t per_message = 256;
  std::size_t window = 8192;
  std::string durability = "fsync";
  unsigned workers = 2;
  unsigned repeats = 3;
  std::uint64_t seed = 1;
};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Result<Run> measure(const Options &options, const Workload &workload) {
  auto worker = onced::bench::WorkerProcess::start(
      options.command, {"--durability", options.durability, "--workers", std::to_string(options.workers)});
  if (!worker) return tl::unexpected(worker.error());
  auto run = onced::bench::produce(workload, worker->endpoints(), worker->process(), options.window,
                                   std::chrono::seconds(600));
  if (!run) return run;
  const auto results = worker->stop_and_count();
  if (!results) return tl::unexpected(results.error());
  const bool exact = run->stored == workload.distinct && run->others == 0 && *results == workload.distinct &&
                     run->duplicates == workload.deliveries - workload.distinct;
  if (exact) return run;
  return tl::unexpected(onced::Error{
      .code = onced::ErrorCode::internal,
      .concerns = "the counts",
      .cause = fmt::format("expected {} stored of {}; replies say {} stored, {} duplicate, {} other; on disk are {}",
                           workload.distinct, workload.deliveries, run->stored, run->duplicates, run->others, *results),
      .remedy = "this run is void"});
}

nlohmann::json describe(const Options &options, const Workload &workload, double share, const Run &run) {
  const auto deliveries = static_cast<double>(workload.deliveries);
  return {{"share", share},
          {"deliveries", workload.deliveries},
          {"distinct", workload.distinct},
          {"per_message", options.per_message},
          {"job_bytes", static_cast<double>(workload.job_bytes) / deliveries},
          {"durability", options.durability},
          {"workers", options.workers},
          {"seed", options.seed},
          {"deliveries_per_second", deliveries / seconds(run.elapsed)},
          {"worker_cpu_us_per_delivery", seconds(run.worker_cpu) * 1e6 / deliveries},
          {"acknowledgement_p50_ms", seconds(run.latency_p50) * 1e3},
          {"acknowledgement_p99_ms", seconds(run.latency_p99) * 1e3}};
}

void print_setting(const Options &options) {
  const auto version = onced::version();
  fmt::print(
      stderr,
      "{} deliveries a run, {} a message, window {}, {}, {} worker threads, seed {}, {} runs each (median), {} cores\n"
      "onced {} {} {}, rocksdb {}\n",
      options.deliveries, options.per_message, options.window, options.durability, options.workers, options.seed,
      options.repeats, std::thread::hardware_concurrency(), version.number, version.commit, version.build_type,
      version.libraries.front().second);
  fmt::print(stderr, "{:>10} {:>10} {:>14} {:>14} {:>10} {:>10}\n", "duplicates", "distinct", "deliveries/s",
             "cpu us/deliv.", "p50 ms", "p99 ms");
}

// The runs of one share, one JSON object each on stdout and their median in the table on stderr. False: a run was void.
bool measure_share(const Options &options, double share) {
  const Workload workload = onced::bench::make_workload(options.deliveries, share, options.per_message, options.seed);
  std::vector<nlohmann::json> rows;
  for (unsigned repeat = 0; repeat < options.repeats; ++repeat) {
    const auto run = measure(options, workload);
    if (!run) {
      fmt::print(stderr, "{}\n", onced::describe(run.error()));
      return false;
    }
    rows.push_back(describe(options, workload, share, *run));
    fmt::print("{}\n", rows.back().dump());
    std::fflush(stdout);
  }
  std::sort(rows.begin(), rows.end(), [](const auto &left, const auto &right) {
    return left["deliveries_per_second"] < right["deliveries_per_second"];
  });
  const auto &row = rows[rows.size() / 2];
  fmt::print(stderr, "{:>9.0f}% {:>10} {:>14.0f} {:>14.2f} {:>10.2f} {:>10.2f}\n", share * 100, workload.distinct,
             row["deliveries_per_second"].get<double>(), row["worker_cpu_us_per_delivery"].get<double>(),
             row["acknowledgement_p50_ms"].get<double>(), row["acknowledgement_p99_ms"].get<double>());
  return true;
}

int run(int argc, char **argv) {
  Options options;
  CLI::App app(
      "Duplicate-heavy throughput of a worker, through real processes. A table on stderr, JSON lines on stdout.",
      "throughput");
  app.add_option("--onced", options.command, "The command to measure")->capture_default_str();
  app.add_option("--deliveries", options.deliveries, "Deliveries a run")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--shares", options.shares, "Shares of duplicates, 0 to below 1")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.999999));
  app.add_option("--per-message", options.per_message, "Deliveries a message")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--window", options.window, "Deliveries unanswered at most")->capture_default_str();
  app.add_option("--durability", options.durability, "fsync or page-cache")
      ->capture_default_str()
      ->check(CLI::IsMember({"fsync", "page-cache"}));
  app.add_option("--workers", options.workers, "Worker threads")->capture_default_str();
  app.add_option("--repeats", options.repeats, "Runs of each share")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Seed of ids, numbers and order")->capture_default_str();
  app.footer("Examples:\n  throughput\n  throughput --shares 0.99 --per-message 1024 --workers 1\n"
             "  throughput --deliveries 20000 --repeats 1");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 64;
  }
  if (options.window < options.per_message) options.window = options.per_message;
  print_setting(options);
  for (const double share : options.shares) {
    if (!measure_share(options, share)) return 1;
  }
  return 0;
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
