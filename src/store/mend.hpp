#pragma once

#include "store/unit_of_work.hpp"

namespace onced::store {

// After rows were lost, makes those of each queued job agree again, as far as they say what it was: a job in the queue
// has its pending row again; one whose key has another row leaves the queue; a pending key without its job and a failed
// one without its dead letter are free, so that their sender, asking again, has them accepted anew. A message whose
// parent is not committed goes. What is damaged stays as it is. On stable storage when it returns. Errors:
// `store_unavailable`, `corrupt`.
[[nodiscard]] Result<void> mend_queue(StoreContext &context);

} // namespace onced::store
