#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "measurement.hpp"
#include "subject.hpp"

// What this program does in processes of its own, so that nothing of an earlier opening helps a later one.
namespace onced::bench::scale {

// Commits the jobs from the first to before the last, on two threads, their durability that of the page cache, and says
// how much memory that took at most ("resident_max_bytes").
inline constexpr const char *fill_task = "fill";
// Commits new jobs until a memtable is nearly full, says which is the first that it has not committed ("end"), and
// waits to be killed.
inline constexpr const char *fill_memtable_task = "fill-memtable";
// Opens the store, says how long that took ("open_ms"), how many of the jobs are there ("recovered") and, if that is
// wanted, how many there are at all ("rows").
inline constexpr const char *open_store_task = "open-store";
// The same for RocksDB by itself, without "rows".
inline constexpr const char *open_bare_task = "open-bare";
// Says what RocksDB knows of the closed database: "pending_compaction_bytes", "files_by_level".
inline constexpr const char *look_task = "look";

struct ChildTask {
  std::string name;
  std::filesystem::path data;
  std::uint64_t first = 0; // of the jobs that are committed, or looked for
  std::uint64_t end = 0;   // before which they end; of a memtable it is to be found out
  bool count_rows = false;
};

// Throws std::runtime_error for whatever fails.
void run_task(const Setting &setting, const ChildTask &task, const std::function<void(const Row &)> &answer);

} // namespace onced::bench::scale
