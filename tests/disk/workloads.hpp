#pragma once

#include "disk/trial.hpp"

namespace onced::testing {

// A store: new keys, duplicates, conflicts, poison, redrives, purges, a memtable that fills while commits go on,
// openings enough for compactions. The store is held against a model of its own after each.
[[nodiscard]] const Workload &store_workload();

// An outbox: jobs kept, removed, kept on; a memtable that fills, openings enough for compactions.
[[nodiscard]] const Workload &outbox_workload();

} // namespace onced::testing
