#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/outcome.hpp"

namespace onced::testing {

// A job that the prepared store has acknowledged, and what it said.
struct Acknowledged {
  Bytes job;
  Outcome outcome = Outcome::stored; // of the first delivery: stored, or one that leaves a dead letter
  std::int64_t sum = 0;              // stored only
};

// How the process that wrote the store ended, and what it left.
enum class Shape : std::uint8_t {
  closed,    // in order
  killed,    // by SIGKILL
  two_logs,  // by SIGKILL, after a memtable was written out: of the older of two live logs some rows are in tables
  many_logs, // likewise, after several memtables were
};

// The acknowledged jobs of a prepared store, in the order of their deliveries.
[[nodiscard]] std::vector<Acknowledged> acknowledged_jobs(Shape shape);

// Writes a store into `directory`, in a process of its own, which acknowledges all of `acknowledged_jobs`: over three
// boots, so that some rows are in tables and some in the log alone. Throws where it did not end as asked.
void prepare_store(const std::filesystem::path &directory, Shape shape);

// Does it in a process of its own, which then ends or, where `killed`, kills itself. Throws where it did not come to
// that end.
void play_apart(const std::function<void()> &deeds, bool killed);

// Opens and closes it, in a process of its own.
void boot_once_more(const std::filesystem::path &directory);

} // namespace onced::testing
