#include "rocksdb/place.hpp"

#include "rocksdb/log_files.hpp"

namespace onced::rocks {
namespace {

Error gone(const std::filesystem::path &path, const std::string &what) {
  return {.code = ErrorCode::store_unavailable,
          .concerns = path.string(),
          .cause = what + " was deleted or replaced while this process had it open",
          .remedy = "put it back as it was, or stop this process; nothing has been acknowledged since"};
}

} // namespace

void Place::settle() {
  {
    const std::scoped_lock lock(mutex_);
    folder_ = inode_at(database_);
  }
  follow_log();
}

void Place::follow_log() {
  const auto logs = log_files(database_);
  const auto path = logs.empty() ? std::filesystem::path() : database_ / logs.back().name();
  const std::scoped_lock lock(mutex_);
  log_path_ = path;
  log_ = path.empty() ? std::nullopt : inode_at(path);
}

Result<void> Place::check() const {
  if (lock_ != nullptr) {
    if (auto checked = lock_->check(); !checked) return checked;
  }
  const std::scoped_lock lock(mutex_);
  if (!folder_ || inode_at(database_) != folder_) return tl::unexpected(gone(database_, "the database"));
  if (!log_ || inode_at(log_path_) != log_) return tl::unexpected(gone(database_, "the newest log of the database"));
  return {};
}

} // namespace onced::rocks
