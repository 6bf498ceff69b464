#include "store/write_gate.hpp"

namespace onced::store {

Result<void> WriteGate::check() {
  if (read_only_) {
    return tl::unexpected(Error{.code = ErrorCode::usage,
                                .concerns = engine_.place(),
                                .cause = "the store was opened read-only",
                                .remedy = "open it for writing to commit"});
  }
  if (const auto health = engine_.health(); !health) close(health.error());
  if (!closed_) return {};
  const std::scoped_lock lock(mutex_);
  return tl::unexpected(*failure_);
}

void WriteGate::close(const Error &error) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = error;
  closed_ = true;
}

} // namespace onced::store
