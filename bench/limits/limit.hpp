#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "transport.hpp"
#include "workload.hpp"

// What the machine or a part of it gives, each limit behind one function. Whatever fails, or counts other than it must,
// throws std::runtime_error: that run is void.
namespace onced::bench::limits {

struct Setting {
  const Traffic &traffic; // packed with `batch` deliveries a message
  unsigned threads = 1;
  std::string transport;           // of the pipe (transport.hpp)
  std::filesystem::path directory; // empty, of this run
};

struct Measured {
  std::chrono::nanoseconds elapsed{};
  std::chrono::nanoseconds cpu{};                // of this process, the threads of the libraries included
  std::vector<std::chrono::nanoseconds> batches; // how long each took that did anything; of a pipe there are none
  std::optional<std::uint64_t> row_bytes;        // keys and values that were written; nothing: not known
};

// A file: the rows that are new in a batch are appended by one write, then fdatasync. One thread.
[[nodiscard]] Measured measure_append(const Setting &setting);

// A bare ZeroMQ PUSH/PULL pipe from another process, which sends the messages as fast as it can;
// nothing is parsed. The CPU time is that of the receiver, its I/O thread included.
[[nodiscard]] Measured measure_pipe(const Setting &setting);

// RocksDB as onced tunes it, without transactions: the rows that are new in a batch by one synced DB::Write. Neither
// look-up, lock, handler nor counters.
[[nodiscard]] Measured measure_write_batch(const Setting &setting);

// Store::commit on batches of deliveries that were parsed ahead.
[[nodiscard]] Measured measure_guard(const Setting &setting);

// The same from the messages on: split, parsed, keyed and digested as in a worker.
[[nodiscard]] Measured measure_guard_parsed(const Setting &setting);

} // namespace onced::bench::limits
