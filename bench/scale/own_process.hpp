#pragma once

#include <chrono>
#include <cstdint>

// What the kernel counts for this process and this thread.
namespace onced::bench::scale {

struct OwnUsage {
  std::chrono::nanoseconds process_cpu{};
  std::chrono::nanoseconds thread_cpu{}; // of the thread that asks
  std::uint64_t disk_read_bytes = 0;     // from the disk: what the page cache had is not in it
  std::uint64_t read_calls = 0;          // reads of files, from wherever
  std::uint64_t resident_bytes = 0;
  std::uint64_t resident_max_bytes = 0; // since the start
};

[[nodiscard]] OwnUsage own_usage();
[[nodiscard]] std::chrono::nanoseconds own_thread_cpu();

// Waits until nothing runs beside this thread, as told by the CPU that is used: until RocksDB has compacted what it
// wants to. Returns how long it was. Throws std::runtime_error when a signal waits.
std::chrono::nanoseconds wait_until_idle();

} // namespace onced::bench::scale
