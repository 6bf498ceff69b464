#pragma once

#include <memory>

#include "engine/engine.hpp"
#include "onced/store.hpp"

namespace onced::engine {

struct OutboxOptions {
  const DirectoryLock &lock;                                 // of the outbox's directory; must outlive the engine
  std::shared_ptr<StorageEnvironment> environment = nullptr; // null: the operating system's
  bool accept_loss = false;
};

// Opens or creates the rows of a sender's outbox, by the embedded engine: jobs in Family::queue, and Family::meta. One
// thread appends, others may erase. Errors: as Store::open.
[[nodiscard]] Result<std::unique_ptr<Engine>> open_outbox(const OutboxOptions &options);

} // namespace onced::engine
