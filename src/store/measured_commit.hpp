#pragma once

#include <rocksdb/utilities/transaction.h>

#include "onced/clock.hpp"
#include "onced/store_counters.hpp"

namespace onced::store {

// Commits the transaction and, where there are counters, counts it with the time that it took.
[[nodiscard]] rocksdb::Status measured_commit(rocksdb::Transaction &transaction, Clock &clock, StoreCounters *counters);

} // namespace onced::store
