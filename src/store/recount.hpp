#pragma once

#include "store/database.hpp"
#include "store/letter_room.hpp"
#include "store/records.hpp"

namespace onced::store {

// The dead letters there are. A damaged one counts, without its bytes: it is told of when it is read. Errors:
// `store_unavailable`, `corrupt`.
[[nodiscard]] Result<LetterAmount> count_letters_by_scan(const Database &database);

// What the counters must say, by scanning every row. Errors: as above.
[[nodiscard]] Result<LaneCounters> count_by_scan(const Database &database);

} // namespace onced::store
