#pragma once

#include "rocksdb/database.hpp"

namespace onced::store {

// After rows were lost, makes those of each queued job fit together again, as far as they say what it was: a job in the
// queue has its pending row again; one whose key has another row has left the queue; a pending key without its job and
// a failed one without its dead letter are free, so that its sender, asking again, has it accepted anew. A message
// whose parent is not committed goes. What is damaged stays as it is. On stable storage when it returns. Errors:
// `store_unavailable`, `corrupt`.
[[nodiscard]] Result<void> mend_queue(const Database &database, WallTime now);

} // namespace onced::store
