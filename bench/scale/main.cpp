// What keys cost when there are many: one store grows from size to size, and at each the same is measured: duplicates
// of few keys (hot), of any key there is (cold), new jobs (absent), the rows and their files (settled), and an opening
// after a kill. The store is used as a worker uses it, with a worker's share of memory, in this process: no transport
// and no parsing is in the figures. A run whose outcomes, results or rows are not exactly those of its seed is void,
// and the program then exits with 1. It says nothing about reads from a disk as long as the page cache holds the files
// (disk_read_bytes_per_delivery tells), nor about many threads, nor about long results.
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/scratch_directory.hpp"
#include "child.hpp"
#include "held_signals.hpp"
#include "measure.hpp"
#include "measurement.hpp"
#include "number_options.hpp"
#include "onced/version.hpp"
#include "own_process.hpp"
#include "reopening.hpp"

namespace {

using namespace onced::bench::scale;
using onced::Durability;
using onced::Outcome;
using onced::bench::Row;

constexpr int exit_void = 1;
constexpr int exit_usage = 64;

// Keys that the hot deliveries are of, at most.
constexpr std::uint64_t hot_keys_max = 10'000;

constexpr std::size_t mebibyte = 1024UL * 1024;

struct Options {
  Setting setting;
  std::vector<double> keys{1e6, 1e7, 5e7};
  std::uint64_t deliveries = 100'000;
  std::size_t batch = 256;
  unsigned repeats = 3;
  std::filesystem::path directory = std::filesystem::temp_directory_path();
  ChildTask child; // without a name: this is no child
};

// Rows printed of one size: three traffics and a reopening a repeat, and what is settled.
std::size_t rows_planned(const Options &options) {
  return options.keys.size() * (4 * options.repeats + 1);
}

void add_options(CLI::App &app, Options &options) {
  app.add_option("--keys", options.keys, "Keys there are, size by size")
      ->delimiter(',')
      ->capture_default_str()
      ->check(onced::bench::decimal(1.0, 1e11));
  app.add_option("--deliveries", options.deliveries, "Deliveries a measurement; those of new jobs add as many keys")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 1'000'000'000));
  app.add_option("--batch", options.batch, "Deliveries a batch")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 4096));
  app.add_option("--repeats", options.repeats, "Measurements of each at a size, all once before any again")
      ->capture_default_str()
      ->check(onced::bench::whole(1, 1000));
  app.add_option("--memory", options.setting.memory_bytes,
                 "As of a worker, which gives the store its share of it "
                 "(default 512MiB)")
      ->transform(CLI::AsSizeValue(false))
      ->transform(onced::bench::without_blanks()) // the last is the first to be asked
      ->check(onced::bench::whole(1, std::uint64_t{1} << 50))
      ->type_name("SIZE");
  app.add_option("--seed", options.setting.seed, "Of ids, and of what is delivered")
      ->capture_default_str()
      ->check(onced::bench::whole(0, UINT64_MAX));
  app.add_option("--directory", options.directory, "Its disk is measured; the data is removed at the end")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  app.footer("Examples:\n  scale > rows.jsonl\n  scale --keys 1e6,5e6 --memory 1GiB\n"
             "  scale --keys 2e4,5e4 --deliveries 5000 --repeats 1");
  // For the processes that this program starts of itself.
  const std::string hidden;
  app.add_option("--child", options.child.name)->group(hidden);
  app.add_option("--child-data", options.child.data)->group(hidden);
  app.add_option("--child-first", options.child.first)->check(onced::bench::whole(0, UINT64_MAX))->group(hidden);
  app.add_option("--child-end", options.child.end)->check(onced::bench::whole(0, UINT64_MAX))->group(hidden);
  app.add_flag("--child-count", options.child.count_rows)->group(hidden);
}

std::string figure(const Row &row, const char *name, int decimals) {
  return row.contains(name) ? fmt::format("{:.{}f}", row[name].get<double>(), decimals) : "-";
}

void print_header() {
  fmt::print(stderr, "{:<16} {:>11} {:>7} {:>13} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}\n", "", "keys",
             "repeat", "deliveries/s", "CPU us", "all us", "reads/d", "disk B/d", "max MiB", "open ms", "bare ms",
             "ratio");
}

void print_line(const Row &row) {
  fmt::print(stderr, "{:<16} {:>11} {:>7} {:>13} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}\n",
             row["measure"].get<std::string>(), row["keys"].get<std::uint64_t>(), figure(row, "repeat", 0),
             figure(row, "deliveries_per_second", 0), figure(row, "cpu_us_per_delivery", 2),
             figure(row, "process_cpu_us_per_delivery", 2), figure(row, "block_reads_per_delivery", 4),
             figure(row, "disk_read_bytes_per_delivery", 0), figure(row, "resident_max_mib", 0),
             figure(row, "store_open_ms", 0), figure(row, "bare_open_ms", 0), figure(row, "store_to_bare_ratio", 2));
}

std::uint64_t bytes_on_disk(const std::filesystem::path &directory) {
  std::uint64_t bytes = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

// One store, growing.
class Growth {
public:
  explicit Growth(const Options &options)
      : options_(options), planned_bytes_(planned_bytes(options.setting)), random_(options.setting.seed),
        directory_(options.directory) {}

  void measure_size(std::uint64_t keys) {
    size_ = keys;
    Row settled = row_of("settled");
    grow(settled);
    measure_traffics(settled);
    settle(settled);
    measure_reopenings();
  }

  [[nodiscard]] std::size_t rows_printed() const { return rows_printed_; }

private:
  [[nodiscard]] Row row_of(std::string_view measure) const {
    return {{"bench", "scale"},
            {"measure", measure},
            {"size", size_},
            {"keys", keys_},
            {"seed", options_.setting.seed},
            {"memory_mib", static_cast<double>(options_.setting.memory_bytes) / mebibyte},
            {"bound_mib", static_cast<double>(planned_bytes_) / mebibyte}};
  }

  void print(Row row) {
    onced::bench::add_versions(row);
    fmt::print("{}\n", row.dump());
    std::fflush(stdout);
    print_line(row);
    ++rows_printed_;
  }

  // Up to the size. In another process, as its memory is not what is measured here. What was committed lies in the page
  // cache only; the opening that follows makes it durable.
  void grow(Row &settled) {
    const std::uint64_t first = keys_;
    const auto begin = std::chrono::steady_clock::now();
    if (size_ > first) {
      Child child(options_.setting, {.name = fill_task, .data = data_, .first = first, .end = size_});
      settled["fill_resident_max_mib"] = child.answer()["resident_max_bytes"].get<double>() / mebibyte;
      child.wait();
      keys_ = size_;
    }
    settled["filled"] = keys_ - first;
    settled["fill_s"] = seconds(std::chrono::steady_clock::now() - begin);
    settled["pending_compaction_after_fill_bytes"] = look()["pending_compaction_bytes"];
  }

  void measure_traffics(Row &settled) {
    Subject subject(options_.setting, data_, Durability::fsync);
    settled["idle_after_fill_s"] = seconds(wait_until_idle());
    for (unsigned repeat = 1; repeat <= options_.repeats; ++repeat) {
      measure_hot(subject, repeat);
      measure_traffic(subject, "cold", Outcome::duplicate, repeat, [this] { return random_.next() % keys_; });
      measure_traffic(subject, "absent", Outcome::stored, repeat, [next = keys_]() mutable { return next++; });
      keys_ += options_.deliveries;
    }
    settled["idle_after_measurements_s"] = seconds(wait_until_idle());
    settled["keys"] = keys_;
    settled["rows"] = subject.count();
    if (settled["rows"] != keys_) {
      throw std::runtime_error(fmt::format("{} rows are there, not {}", settled["rows"].dump(), keys_));
    }
  }

  // Few keys of all parts of the store. All of them are asked for once before it counts.
  void measure_hot(Subject &subject, unsigned repeat) {
    const std::uint64_t hot = std::min(hot_keys_max, keys_);
    const std::uint64_t stride = keys_ / hot;
    Row unprinted;
    measure(subject,
            {.seed = options_.setting.seed,
             .deliveries = hot,
             .batch = options_.batch,
             .expected = Outcome::duplicate,
             .next = [at = std::uint64_t{0}, stride]() mutable { return at++ * stride; }},
            unprinted);
    measure_traffic(subject, "hot", Outcome::duplicate, repeat,
                    [this, hot, stride] { return random_.next() % hot * stride; });
  }

  void measure_traffic(Subject &subject, std::string_view name, Outcome expected, unsigned repeat,
                       std::function<std::uint64_t()> next) {
    Row row = row_of(name);
    row["share"] = expected == Outcome::duplicate ? 1 : 0;
    row["batch"] = options_.batch;
    row["threads"] = 1;
    row["durability"] = onced::name_of(Durability::fsync);
    row["deliveries"] = options_.deliveries;
    row["distinct"] = expected == Outcome::stored ? options_.deliveries : 0;
    row["repeat"] = repeat;
    measure(subject,
            {.seed = options_.setting.seed,
             .deliveries = options_.deliveries,
             .batch = options_.batch,
             .expected = expected,
             .next = std::move(next)},
            row);
    print(std::move(row));
  }

  void settle(Row &settled) {
    const Row looked = look();
    settled["disk_bytes"] = bytes_on_disk(data_);
    settled["pending_compaction_bytes"] = looked["pending_compaction_bytes"];
    settled["files_by_level"] = looked["files_by_level"];
    print(settled);
  }

  void measure_reopenings() {
    const onced::ScratchDirectory scratch(directory_.path());
    measure_reopening(options_.setting, {.data = data_, .keys = keys_}, scratch.path(), options_.repeats,
                      [this](unsigned repeat, const Row &figures) {
                        Row row = row_of("open_after_kill");
                        row["durability"] = onced::name_of(Durability::fsync);
                        row["repeat"] = repeat;
                        row.update(figures);
                        print(std::move(row));
                      });
  }

  // At the closed database.
  [[nodiscard]] Row look() const { return Child(options_.setting, {.name = look_task, .data = data_}).answer(); }

  const Options &options_;
  std::size_t planned_bytes_;
  onced::SeededRandom random_;
  onced::ScratchDirectory directory_;
  std::filesystem::path data_ = directory_.path() / "data";
  std::uint64_t size_ = 0; // that is measured
  std::uint64_t keys_ = 0; // there are
  std::size_t rows_printed_ = 0;
};

int measure_all(const Options &options) {
  const auto version = onced::version();
  fmt::print(stderr,
             "{} sizes: {} deliveries a measurement, batches of {}, fsync, seed {}, data in {}, {} cores, onced {} {}, "
             "rocksdb {}\n",
             options.keys.size(), options.deliveries, options.batch, options.setting.seed, options.directory.string(),
             std::thread::hardware_concurrency(), version.number, version.build_type, version.libraries.front().second);
  Growth growth(options);
  print_header();
  int exit_code = 0;
  try {
    for (const double keys : options.keys)
      growth.measure_size(static_cast<std::uint64_t>(keys));
  } catch (const std::exception &error) {
    fmt::print(stderr, "scale: this run is void: {}\n", error.what());
    exit_code = exit_void;
  }
  fmt::print(stderr, "{} of {} measurements done, the counts of each exact\n", growth.rows_printed(),
             rows_planned(options));
  return exit_code;
}

// Whether a worker could do with so much memory.
bool is_possible(const Setting &setting) {
  try {
    return planned_bytes(setting) > 0;
  } catch (const std::exception &error) {
    fmt::print(stderr, "scale: {}\n", error.what());
    return false;
  }
}

int be_child(const Options &options) {
  run_task(options.setting, options.child, [](const Row &answer) {
    fmt::print("{}\n", answer.dump());
    std::fflush(stdout);
  });
  return 0;
}

int run(int argc, char **argv) {
  Options options;
  CLI::App app("What keys cost when there are many of them. A table on stderr, JSON lines on stdout.", "scale");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  if (!options.child.name.empty()) return be_child(options);
  if (!is_possible(options.setting)) return exit_usage;
  const onced::bench::HeldSignals signals; // before any other thread
  return measure_all(options);
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "scale: %s\n", error.what());
    return 70;
  }
}
