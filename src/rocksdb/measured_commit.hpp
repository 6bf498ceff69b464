#pragma once

#include <rocksdb/utilities/transaction.h>

#include "onced/clock.hpp"
#include "onced/store_counters.hpp"
#include "rocksdb/database.hpp"

namespace onced::rocks {

// Commits the transaction and, where there are counters, counts it with the time that it took. Every commit of a store
// goes through here. An I/O error also where it went into files that were deleted or replaced: the store must be given
// up then, as after any commit of which nobody knows whether the next opening will find it.
[[nodiscard]] rocksdb::Status measured_commit(const Database &database, rocksdb::Transaction &transaction, Clock &clock,
                                              StoreCounters *counters);

} // namespace onced::rocks
