#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "rocksdb/database.hpp"

namespace onced::store {

// Whether a store may still be written to. After a write whose outcome is unknown it may not, until it is opened again.
// Any thread.
class Standing {
public:
  Standing(const Database &database, bool read_only) : database_(database), read_only_(read_only) {}

  // Errors: `usage` (read-only); else why it was given up.
  [[nodiscard]] Result<void> check_writable();
  void give_up(const Error &error);
  [[nodiscard]] bool given_up() const { return given_up_; }

private:
  const Database &database_;
  bool read_only_;
  std::atomic<bool> given_up_{false};
  std::mutex mutex_;             // guards the next
  std::optional<Error> failure_; // the first error, which names the cause
};

} // namespace onced::store
