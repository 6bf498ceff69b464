#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>

#include "held_signals.hpp"
#include "jobs.hpp"
#include "own_process.hpp"

namespace onced::bench::scale {
namespace {

using std::chrono::nanoseconds;

// Of the commits alone, in the thread that makes them.
struct Commits {
  nanoseconds elapsed{};
  nanoseconds cpu{};
};

Commits commit_all(Subject &subject, const Traffic &traffic) {
  Commits commits;
  Batch batch(traffic.seed);
  for (std::uint64_t left = traffic.deliveries; left > 0; left -= batch.deliveries().size()) {
    batch.clear();
    while (batch.deliveries().size() < std::min<std::uint64_t>(traffic.batch, left))
      batch.add(traffic.next());
    const auto begin = std::chrono::steady_clock::now();
    const auto cpu_before = own_thread_cpu();
    const auto settlements = subject.commit(batch.deliveries());
    commits.cpu += own_thread_cpu() - cpu_before;
    commits.elapsed += std::chrono::steady_clock::now() - begin;
    batch.check(settlements, traffic.expected);
    if (HeldSignals::pending()) throw std::runtime_error("told to stop");
  }
  return commits;
}

double mib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / (1024 * 1024);
}

} // namespace

void measure(Subject &subject, const Traffic &traffic, Row &row) {
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  rocksdb::PerfContext &counted = *rocksdb::get_perf_context();
  counted.Reset();
  const std::uint64_t cache_hits_before = subject.cache_hits();
  const OwnUsage before = own_usage();
  const Commits commits = commit_all(subject, traffic);
  const OwnUsage after = own_usage();

  const auto each = [&](auto count) { return static_cast<double>(count) / static_cast<double>(traffic.deliveries); };
  const auto each_us = [&](nanoseconds time) { return each(std::chrono::duration<double, std::micro>(time).count()); };
  const nanoseconds making = after.thread_cpu - before.thread_cpu - commits.cpu;
  row["deliveries_per_second"] =
      static_cast<double>(traffic.deliveries) / std::chrono::duration<double>(commits.elapsed).count();
  row["cpu_us_per_delivery"] = each_us(commits.cpu);
  row["process_cpu_us_per_delivery"] = each_us(after.process_cpu - before.process_cpu - making);
  row["committed_cache_hits_per_delivery"] = each(subject.cache_hits() - cache_hits_before);
  row["block_reads_per_delivery"] = each(counted.block_read_count);
  row["index_block_reads_per_delivery"] = each(counted.index_block_read_count);
  row["filter_block_reads_per_delivery"] = each(counted.filter_block_read_count);
  row["block_cache_hits_per_delivery"] = each(counted.block_cache_hit_count);
  row["filters_passed_per_delivery"] = each(counted.bloom_sst_hit_count);
  row["read_calls_per_delivery"] = each(after.read_calls - before.read_calls);
  row["disk_read_bytes_per_delivery"] = each(after.disk_read_bytes - before.disk_read_bytes);
  row["resident_mib"] = mib(after.resident_bytes);
  row["resident_max_mib"] = mib(after.resident_max_bytes);
}

} // namespace onced::bench::scale
