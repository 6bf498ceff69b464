#include "store/standing.hpp"

namespace onced::store {

Result<void> Standing::check_writable() {
  if (read_only_) {
    return tl::unexpected(Error{.code = ErrorCode::usage,
                                .concerns = database_.path(),
                                .cause = "the store was opened read-only",
                                .remedy = "open it for writing to commit"});
  }
  if (const auto health = database_.health(); !health) give_up(health.error());
  if (!given_up_) return {};
  const std::scoped_lock lock(mutex_);
  return tl::unexpected(*failure_);
}

void Standing::give_up(const Error &error) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = error;
  given_up_ = true;
}

} // namespace onced::store
