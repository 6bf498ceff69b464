#include "bench.hpp"

#include <thread>
#include <vector>

#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "bench/held_signals.hpp"
#include "bench/measurement.hpp"
#include "bench/table.hpp"
#include "onced/version.hpp"

namespace onced::tools {
namespace {

constexpr bench::Label label = bench::Label::share;

bench::Series series_of(const BenchOptions &options) {
  bench::Series series;
  series.command = "/proc/self/exe"; // this very program, wherever it lies
  series.directory = options.directory;
  series.deliveries = options.quick ? 200'000 : 1'000'000;
  series.repeats = options.quick ? 1 : 3;
  for (const double share : {0.0, 0.5, 0.9, 0.99, 1.0}) {
    series.cells.push_back(
        {.duplicate_share = share, .durability = std::string(name_of(options.durability)), .workers = options.workers});
  }
  return series;
}

bool is_in_memory(const std::filesystem::path &directory) {
  struct statfs status {};
  return ::statfs(directory.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

void print_setting(const BenchOptions &options, const bench::Series &series) {
  const Version ours = version();
  fmt::print(stderr, "onced {} ({}), {}, {}", ours.number, ours.commit, ours.build_type, ours.compiler);
  for (const auto &[name, number] : ours.libraries)
    fmt::print(stderr, ", {} {}", name, number);
  fmt::print(stderr,
             "\n{}, {} worker threads, {} cores, over {}, data in {}\n"
             "{} deliveries a run, {} a message, {} unanswered at most, seed {}\n",
             name_of(options.durability), options.workers, std::thread::hardware_concurrency(), series.transport,
             options.directory.string(), series.deliveries, series.cells.front().per_message, series.in_flight,
             series.seed);
  if (is_in_memory(options.directory)) {
    fmt::print(stderr, "note: {} is in memory, where a sync costs nothing; give a --directory on the disk to measure\n",
               options.directory.string());
  }
  fmt::print(stderr, "\n{}", bench::table_header(label));
}

} // namespace

ExitCode run_bench(const BenchOptions &options, Output &output) {
  const bench::HeldSignals signals; // a signal takes effect when the worker and its data are gone
  const bench::Series series = series_of(options);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  print_setting(options, series);
  std::vector<Json> rows;
  Result<void> flushed;
  const auto measured = bench::measure(series, [&](const bench::Row &row) {
    rows.push_back(row);
    fmt::print(stderr, "{}", bench::table_line(label, row));
    if (terminal) return;
    output.line(row);
    flushed = output.flush();
  });
  if (!measured) return report(measured.error());
  if (!flushed) return report(flushed.error());
  if (series.repeats > 1) {
    fmt::print(stderr, "\n{}{}", bench::table_header(label), bench::table_of_repeats(label, rows));
  }
  fmt::print(stderr, "{} of {} runs, the counts of each exact\n", rows.size(), series.runs());
  return ExitCode::ok;
}

} // namespace onced::tools
