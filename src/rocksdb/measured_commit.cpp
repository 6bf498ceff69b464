#include "rocksdb/measured_commit.hpp"

#include <chrono>

#include <rocksdb/iostats_context.h>
#include <rocksdb/perf_level.h>

namespace onced::rocks {

namespace {

rocksdb::Status timed_commit(rocksdb::Transaction &transaction, Clock &clock, StoreCounters *counters) {
  if (counters == nullptr) return transaction.Commit();
  // RocksDB times the syncs of this thread, which does one for all commits that wait with it, or has another do it.
  rocksdb::IOStatsContext &io = *rocksdb::get_iostats_context();
  const std::uint64_t sync_ns_before = io.fsync_nanos;
  const MonotonicTime begun = clock.monotonic();
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableTimeExceptForMutex);
  auto status = transaction.Commit();
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  if (!status.ok()) return status;
  const std::uint64_t sync_ns = io.fsync_nanos - sync_ns_before;
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(clock.monotonic() - begun);
  ++counters->commits;
  counters->commit_us += static_cast<std::uint64_t>(took.count());
  if (sync_ns > 0) ++counters->log_syncs;
  counters->log_sync_us += sync_ns / 1000;
  return status;
}

} // namespace

rocksdb::Status measured_commit(const Database &database, rocksdb::Transaction &transaction, Clock &clock,
                                StoreCounters *counters) {
  auto status = timed_commit(transaction, clock, counters);
  if (!status.ok()) return status;
  const auto placed = database.check_place();
  return placed ? status : rocksdb::Status::IOError(placed.error().concerns, placed.error().cause);
}

} // namespace onced::rocks
