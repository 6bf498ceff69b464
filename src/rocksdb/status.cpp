#include "rocksdb/status.hpp"

namespace onced::rocks {

Error status_error(const rocksdb::Status &status, const std::string &concerns) {
  const std::string text = status.ToString();
  if (status.IsCorruption()) {
    return {.code = ErrorCode::corrupt,
            .concerns = concerns,
            .cause = text,
            .remedy = "restore the named file from a copy of the whole data directory; do not delete it"};
  }
  if (text.find("Resource temporarily unavailable") != std::string::npos) {
    return {.code = ErrorCode::locked,
            .concerns = concerns,
            .cause = "another process has the database open",
            .remedy = "stop that process first"};
  }
  return {.code = ErrorCode::store_unavailable,
          .concerns = concerns,
          .cause = text,
          .remedy = "check the disk, its free space and the rights of this user; then open again"};
}

rocksdb::ReadOptions scan_options() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  return options;
}

bool is_retryable(const rocksdb::Status &status) {
  return status.IsBusy() || status.IsTimedOut() || status.IsTryAgain();
}

} // namespace onced::rocks
