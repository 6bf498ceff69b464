#pragma once

#include <filesystem>
#include <functional>

#include "child_tasks.hpp"

namespace onced::bench::scale {

// A closed store that holds the jobs from 0 to before `keys`.
struct ClosedStore {
  std::filesystem::path data;
  std::uint64_t keys = 0;
};

// Kills a process that has committed about a memtable of further jobs to a copy of the store, and opens copies of what
// it left: by onced and by RocksDB alone in turn, each in a process of its own, `repeats` times. What each pair of
// openings gave goes into a row; the store itself stays as it is. `scratch` is an empty directory on the same file
// system. Throws std::runtime_error where a row is missing after an opening.
void measure_reopening(const Setting &setting, const ClosedStore &store, const std::filesystem::path &scratch,
                       unsigned repeats, const std::function<void(unsigned repeat, const Row &)> &on_figures);

} // namespace onced::bench::scale
