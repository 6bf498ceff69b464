#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "engine/engine.hpp"

namespace onced::store {

// Whether a store may still be written to. After a write whose outcome is unknown it may not, until it is opened again.
// Any thread.
class WriteGate {
public:
  WriteGate(const engine::Engine &engine, bool read_only) : engine_(engine), read_only_(read_only) {}

  // Errors: `usage` (read-only); else why the store was given up.
  [[nodiscard]] Result<void> check();
  // Nothing is written any more. The first error names the cause.
  void close(const Error &error);

private:
  const engine::Engine &engine_;
  bool read_only_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_; // guards the next
  std::optional<Error> failure_;
};

} // namespace onced::store
