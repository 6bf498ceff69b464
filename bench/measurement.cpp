#include "measurement.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "onced/version.hpp"
#include "process_usage.hpp"
#include "worker_process.hpp"
#include "workload.hpp"

namespace onced::bench {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Error counts_differ(std::string cause) {
  return {.code = ErrorCode::internal,
          .concerns = "the counts",
          .cause = std::move(cause),
          .remedy = "this run is void; report this defect"};
}

// A job that was sent again may have been stored by the send whose answer was lost: then its first answer is
// `duplicate`. The rows on disk are exact all the same.
Result<void> check_outcomes(const Run &run, std::size_t stored, std::size_t duplicates, std::size_t conflicts) {
  const bool exact = run.others == 0 && run.conflicts == conflicts && run.stored <= stored &&
                     run.stored + run.duplicates == stored + duplicates && (run.stored == stored || run.resent > 0);
  if (exact) return {};
  return tl::unexpected(counts_differ(
      fmt::format("expected {} stored, {} duplicate, {} conflict; replies say {}, {}, {} and {} other, "
                  "{} deliveries sent again",
                  stored, duplicates, conflicts, run.stored, run.duplicates, run.conflicts, run.others, run.resent)));
}

Result<void> check_rows(const WorkerProcess::Rows &rows, const Traffic &traffic) {
  if (rows.results == traffic.results && rows.dead_letters == traffic.dead_letters) return {};
  return tl::unexpected(
      counts_differ(fmt::format("expected {} results and {} dead letters on disk; there are {} and {}", traffic.results,
                                traffic.dead_letters, rows.results, rows.dead_letters)));
}

// What one run gave, its counts being exact.
struct Measured {
  Run run;
  WorkerProcess::Counters counters; // of the measured part alone
  std::uint64_t resident_max_bytes = 0;
};

Result<void> preload(const WorkerProcess &worker, const Workload &workload) {
  if (workload.deliveries == 0) return {};
  const auto run = produce(workload, worker.endpoints(), worker.process(), {});
  if (!run) return tl::unexpected(run.error());
  return check_outcomes(*run, workload.distinct, 0, 0);
}

// The measured part, and what the worker has counted for it.
Result<Measured> send(const WorkerProcess &worker, const Traffic &traffic, const ProducerOptions &options) {
  const auto before = worker.counters();
  if (!before) return tl::unexpected(before.error());
  const auto run = produce(traffic.measured, worker.endpoints(), worker.process(), options);
  if (!run) return tl::unexpected(run.error());
  const auto after = worker.counters();
  if (!after) return tl::unexpected(after.error());
  if (auto checked = check_outcomes(*run, traffic.stored, traffic.duplicates, traffic.conflicts); !checked) {
    return tl::unexpected(checked.error());
  }
  return Measured{.run = *run,
                  .counters = {.deliveries = after->deliveries - before->deliveries,
                               .batches = after->batches - before->batches,
                               .commits = after->commits - before->commits,
                               .log_syncs = after->log_syncs - before->log_syncs},
                  .resident_max_bytes = usage_of(worker.process().id()).resident_max_bytes};
}

Result<Measured> measure_run(const Series &series, const Cell &cell, const Traffic &traffic,
                             const ProducerOptions &options) {
  std::vector<std::string> arguments{"--durability", cell.durability, "--workers", std::to_string(cell.workers)};
  if (series.dropped_replies_share > 0) {
    for (const std::string &word : {std::string("--drop-replies"), std::to_string(series.dropped_replies_share),
                                    std::string("--seed"), std::to_string(series.seed)}) {
      arguments.push_back(word);
    }
  }
  auto worker = WorkerProcess::start(series.command, arguments, series.transport, series.directory);
  if (!worker) return tl::unexpected(worker.error());
  if (auto preloaded = preload(*worker, traffic.preload); !preloaded) return tl::unexpected(preloaded.error());
  auto measured = send(*worker, traffic, options);
  if (!measured) return measured;
  const auto rows = worker->stop_and_count();
  if (!rows) return tl::unexpected(rows.error());
  if (auto checked = check_rows(*rows, traffic); !checked) return tl::unexpected(checked.error());
  return measured;
}

Row setting_of(const Series &series, const Cell &cell, const Traffic &traffic, unsigned repeat) {
  return {{"bench", "throughput"},
          {"share", cell.duplicate_share},
          {"per_message", cell.per_message},
          {"durability", cell.durability},
          {"transport", series.transport},
          {"workers", cell.workers},
          {"in_flight", series.in_flight},
          {"mode", "closed"},
          {"rate", nullptr},
          {"load", nullptr},
          {"arrivals", nullptr},
          {"deliveries", traffic.measured.deliveries},
          {"distinct", traffic.stored},
          {"preloaded", traffic.preload.deliveries},
          {"conflicts", traffic.conflicts},
          {"repeat", repeat},
          {"seed", series.seed},
          {"job_bytes",
           static_cast<double>(traffic.measured.job_bytes) / static_cast<double>(traffic.measured.deliveries)}};
}

void add_figures(Row &row, const Traffic &traffic, const Measured &measured) {
  const Run &run = measured.run;
  const auto deliveries = static_cast<double>(traffic.measured.deliveries);
  const auto stored = static_cast<double>(traffic.stored);
  row["deliveries_per_second"] = deliveries / seconds(run.elapsed);
  row["results_per_second"] = stored / seconds(run.elapsed);
  row["worker_cpu_us_per_delivery"] = microseconds(run.worker_cpu) / deliveries;
  row["bytes_written_per_result"] = nullptr;
  if (run.worker_written_bytes && traffic.stored > 0) {
    row["bytes_written_per_result"] = static_cast<double>(*run.worker_written_bytes) / stored;
  }
  row["commits"] = measured.counters.commits;
  row["log_syncs"] = measured.counters.log_syncs;
  row["deliveries_per_batch"] =
      static_cast<double>(measured.counters.deliveries) / static_cast<double>(measured.counters.batches);
  row["acknowledgement_p50_us"] = microseconds(run.latency_p50);
  row["acknowledgement_p99_us"] = microseconds(run.latency_p99);
  row["acknowledgement_p999_us"] = microseconds(run.latency_p999);
  row["resident_max_mib"] = static_cast<double>(measured.resident_max_bytes) / (1024 * 1024);
  row["resent"] = run.resent;
}

// The runs of one cell in one repeat: the closed loop, then the schedules.
class CellRuns {
public:
  CellRuns(const Series &series, const Cell &cell, unsigned repeat, const std::function<void(const Row &)> &on_row)
      : series_(series), cell_(cell), repeat_(repeat), on_row_(on_row),
        traffic_(make_traffic({.deliveries = series.deliveries,
                               .duplicate_share = cell.duplicate_share,
                               .conflict_share = series.conflict_share,
                               .per_message = cell.per_message,
                               .seed = series.seed})) {}

  [[nodiscard]] Result<void> run() {
    if (series_.deliveries_per_second) return run_open(*series_.deliveries_per_second, std::nullopt);
    const auto maximum = run_closed();
    if (!maximum) return tl::unexpected(maximum.error());
    for (const double load : series_.loads) {
      if (auto done = run_open(load * *maximum, load); !done) return done;
    }
    return {};
  }

private:
  // Deliveries a second.
  Result<double> run_closed() {
    Row row = setting_of(series_, cell_, traffic_, repeat_);
    if (auto done = finish(row, {.in_flight = series_.in_flight, .schedule = {}}); !done) {
      return tl::unexpected(done.error());
    }
    return row["deliveries_per_second"].get<double>();
  }

  Result<void> run_open(double rate, std::optional<double> load) {
    Row row = setting_of(series_, cell_, traffic_, repeat_);
    row["mode"] = "open";
    row["rate"] = rate;
    if (load) row["load"] = *load;
    row["arrivals"] = series_.exponential_arrivals ? "exponential" : "fixed";
    const Schedule schedule{
        .deliveries_per_second = rate, .exponential = series_.exponential_arrivals, .seed = series_.seed};
    return finish(row, {.in_flight = series_.in_flight, .schedule = schedule});
  }

  Result<void> finish(Row &row, const ProducerOptions &options) {
    const auto measured = measure_run(series_, cell_, traffic_, options);
    if (!measured) return tl::unexpected(measured.error());
    add_figures(row, traffic_, *measured);
    add_versions(row);
    on_row_(row);
    return {};
  }

  const Series &series_;
  const Cell &cell_;
  unsigned repeat_;
  const std::function<void(const Row &)> &on_row_;
  Traffic traffic_;
};

} // namespace

void add_versions(Row &row) {
  const Version ours = version();
  row["cores"] = std::thread::hardware_concurrency();
  row["onced"] = worker_build();
  row["build_type"] = ours.build_type;
  for (const auto &[name, number] : ours.libraries)
    row[std::string(name)] = number;
  row["rocksdb_asserts"] = ours.rocksdb_asserts;
}

Result<void> measure(const Series &series, const std::function<void(const Row &)> &on_row) {
  for (unsigned repeat = 1; repeat <= series.repeats; ++repeat) {
    for (Cell cell : series.cells) {
      cell.per_message = std::min(cell.per_message, series.in_flight);
      if (auto done = CellRuns(series, cell, repeat, on_row).run(); !done) return done;
    }
  }
  return {};
}

} // namespace onced::bench
