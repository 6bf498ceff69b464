#include "damage/prepared_store.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "support/copy.hpp"
#include "support/eventually.hpp"
#include "support/store_harness.hpp"

namespace onced::testing {
namespace {

constexpr unsigned boots = 3;
constexpr unsigned jobs_per_boot = 6; // of each boot the log stays below 4 KiB
constexpr std::size_t batch_jobs = 3;
// Dead letters that fill a memtable of theirs (8 MiB), and then some.
constexpr unsigned big_letters = 10;

unsigned count_big(Shape shape) {
  if (shape == Shape::many_logs) return 3 * big_letters;
  return shape == Shape::two_logs ? big_letters : 0;
}
constexpr std::size_t big_bytes = 1'000'000;

void add_good(const std::string &name, unsigned number, std::vector<Acknowledged> &jobs) {
  jobs.push_back({job_bytes(name, {number, 1000}), Outcome::stored, number + 1000});
}

// Some of the jobs are followed by one that is kept as a dead letter.
void add_small(unsigned boot, std::vector<Acknowledged> &jobs) {
  for (unsigned number = 0; number < jobs_per_boot; ++number) {
    const std::string name = "job-" + std::to_string(boot) + "-" + std::to_string(number);
    add_good(name, number, jobs);
    if (number % 3 != 0) continue;
    if (number % 2 == 0) {
      jobs.push_back({job_bytes(name, {number, 2000}), Outcome::conflict, 0});
    } else {
      jobs.push_back({"no job " + name, Outcome::invalid, 0});
    }
  }
}

// Each in a batch with good jobs, so that good ones end the log.
void add_big(Shape shape, std::vector<Acknowledged> &jobs) {
  for (unsigned number = 0; number < count_big(shape); ++number) {
    const std::string name = "big-" + std::to_string(number);
    jobs.push_back({name + Bytes(big_bytes, 'x'), Outcome::invalid, 0});
    add_good(name, number, jobs);
    add_good(name + "-too", number, jobs);
  }
}

void write(StoreHarness &harness, std::span<const Acknowledged> jobs) {
  for (std::size_t at = 0; at < jobs.size(); at += batch_jobs) {
    const auto slice = jobs.subspan(at, std::min(batch_jobs, jobs.size() - at));
    Batch batch;
    for (const Acknowledged &job : slice)
      batch.add(job.job);
    const auto settled = harness.commit(batch);
    for (std::size_t in_batch = 0; in_batch < slice.size(); ++in_batch) {
      if (settled[in_batch].outcome != slice[in_batch].outcome) throw std::runtime_error("another outcome");
    }
  }
}

std::set<std::filesystem::path> files_of(const std::filesystem::path &directory, const std::string &extension) {
  std::set<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(directory / "db")) {
    std::error_code gone; // it may be merged away meanwhile
    if (entry.path().extension() == extension && entry.file_size(gone) > 0 && !gone) files.insert(entry.path());
  }
  return files;
}

void write_store(const std::filesystem::path &directory, Shape shape, unsigned stores_before) {
  StoreHarness harness(directory);
  harness.options.dead_letter_bytes_a_second = UINT64_C(1) << 40U; // as fast as they come
  for (unsigned drawn = 0; drawn < stores_before; ++drawn)
    (void)harness.random.next(); // so that it has another identity than those
  for (unsigned boot = 0; boot < boots; ++boot) {
    harness.open();
    std::vector<Acknowledged> jobs;
    if (count_big(shape) > 0 && boot + 1 == boots) {
      const auto before = files_of(directory, ".sst");
      add_big(shape, jobs);
      write(harness, jobs);
      jobs.clear();
      const auto is_flushed = [&] {
        // Not more tables than before: others may be merged at the same time.
        const auto tables = files_of(directory, ".sst");
        const bool has_new = !std::includes(before.begin(), before.end(), tables.begin(), tables.end());
        return files_of(directory, ".log").size() >= (shape == Shape::many_logs ? 4U : 2U) && has_new;
      };
      if (!eventually(is_flushed)) throw std::runtime_error("no table");
    }
    add_small(boot, jobs);
    write(harness, jobs);
  }
  if (shape != Shape::closed) ::kill(::getpid(), SIGKILL);
}

} // namespace

void play_apart(const std::function<void()> &deeds, bool killed) {
  const ProcessEnd end = do_in_copy(deeds);
  if (killed ? !end.is_kill() : !end.is_success()) throw std::runtime_error("the files could not be prepared");
}

std::vector<Acknowledged> acknowledged_jobs(Shape shape) {
  std::vector<Acknowledged> jobs;
  for (unsigned boot = 0; boot < boots; ++boot) {
    if (boot + 1 == boots) add_big(shape, jobs);
    add_small(boot, jobs);
  }
  return jobs;
}

void prepare_store(const std::filesystem::path &directory, Shape shape) {
  static unsigned stores_before = 0;
  play_apart([&] { write_store(directory, shape, stores_before); }, shape != Shape::closed);
  ++stores_before;
}

void boot_once_more(const std::filesystem::path &directory) {
  play_apart(
      [&] {
        StoreHarness harness(directory);
        harness.open();
        harness.close();
      },
      false);
}

} // namespace onced::testing
