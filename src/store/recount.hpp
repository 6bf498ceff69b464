#pragma once

#include "rocksdb/database.hpp"
#include "store/row_room.hpp"
#include "store/rows/records.hpp"

namespace onced::store {

// The dead letters there are. A damaged one counts, without its bytes: it is told of when it is read. Errors:
// `store_unavailable`, `corrupt`.
[[nodiscard]] Result<RowAmount> count_letters_by_scan(const Database &database);

// What the counters must say, by scanning every row. Errors: as above.
[[nodiscard]] Result<LaneCounters> count_by_scan(const Database &database);

// The greatest boot count under which a queued job was leased; 0: none was. Errors: as above.
[[nodiscard]] Result<std::uint64_t> greatest_boot_by_scan(const Database &database);

} // namespace onced::store
