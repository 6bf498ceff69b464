#include "runner/job_lock.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace onced::runner {
namespace {

// Nothing: somebody holds it.
Result<std::optional<Descriptor>> lock(Descriptor file, int operation, const std::filesystem::path &path) {
  if (::flock(file.number(), operation | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return std::nullopt;
  return tl::unexpected(system_error(path, "lock"));
}

} // namespace

Result<std::optional<Descriptor>> take_lock(const std::filesystem::path &lock_file) {
  for (;;) {
    Descriptor file(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open()) return tl::unexpected(system_error(lock_file, "open"));
    auto locked = lock(std::move(file), LOCK_EX, lock_file);
    if (!locked || !*locked) return locked;
    // Removed in between, it would be a lock that nobody else sees.
    struct stat status {};
    if (::fstat((*locked)->number(), &status) != 0) return tl::unexpected(system_error(lock_file, "look at"));
    if (status.st_nlink > 0) return locked;
  }
}

Result<bool> lock_is_free(const std::filesystem::path &lock_file) {
  Descriptor file(::open(lock_file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open() && errno == ENOENT) return true;
  if (!file.is_open()) return tl::unexpected(system_error(lock_file, "open"));
  // Shared, so that two who ask do not find each other.
  const auto locked = lock(std::move(file), LOCK_SH, lock_file);
  if (!locked) return tl::unexpected(locked.error());
  return locked->has_value();
}

Result<bool> remove_lock(const std::filesystem::path &lock_file) {
  Descriptor file(::open(lock_file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open() && errno == ENOENT) return true;
  if (!file.is_open()) return tl::unexpected(system_error(lock_file, "open"));
  const auto locked = lock(std::move(file), LOCK_EX, lock_file);
  if (!locked) return tl::unexpected(locked.error());
  if (!*locked) return false;
  // Who else removes it, and makes it anew, has it locked meanwhile: then the name is no longer this file's.
  struct stat status {};
  if (::fstat((*locked)->number(), &status) != 0) return tl::unexpected(system_error(lock_file, "look at"));
  if (status.st_nlink == 0) return true;
  if (::unlink(lock_file.c_str()) != 0) return tl::unexpected(system_error(lock_file, "remove"));
  return true;
}

Result<void> JobLocks::prepare() {
  const auto failed = [&](const std::error_code &error) {
    return tl::unexpected(Error{.code = ErrorCode::store_unavailable,
                                .concerns = folder_.string(),
                                .cause = error.message(),
                                .remedy = "make the folder usable"});
  };
  std::error_code error;
  std::filesystem::create_directory(folder_, error);
  if (error) return failed(error);
  auto entry = std::filesystem::directory_iterator(folder_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    remove(entry->path());
  if (error) return failed(error);
  return {};
}

void JobLocks::remove(const std::filesystem::path &lock_file) {
  const std::scoped_lock lock(mutex_);
  const auto removed = remove_lock(lock_file);
  if (removed && !*removed) held_.insert(lock_file);
  if (removed && *removed) held_.erase(lock_file);
  try_held_again();
}

// Two at each call, in turn: more than come.
void JobLocks::try_held_again() {
  for (int tries = 0; tries < 2 && !held_.empty(); ++tries) {
    auto file = held_.upper_bound(tried_last_);
    if (file == held_.end()) file = held_.begin();
    tried_last_ = *file;
    const auto removed = remove_lock(*file);
    if (removed && *removed) held_.erase(file);
  }
}

} // namespace onced::runner
