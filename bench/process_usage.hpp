#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace onced::bench {

// What the kernel has counted for a process, all its threads together.
struct ProcessUsage {
  std::chrono::nanoseconds cpu{};
  // Bytes that it caused to be written to the storage layer (write_bytes of /proc/PID/io): pages made dirty, so the
  // overwriting of one that is still dirty is not seen, nor are the file system's own writes. Nothing: not to be read.
  std::optional<std::uint64_t> written_bytes;
  std::uint64_t resident_max_bytes = 0; // since its start; 0: not to be read
};

[[nodiscard]] ProcessUsage usage_of(int process);

} // namespace onced::bench
