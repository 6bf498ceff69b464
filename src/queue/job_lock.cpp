#include "queue/job_lock.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace onced::queue {
namespace {

using store::Descriptor;
using store::system_error;

// Nothing: somebody holds it.
Result<std::optional<Descriptor>> lock(Descriptor file, int operation, const std::filesystem::path &path) {
  if (::flock(file.number(), operation | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return std::nullopt;
  return tl::unexpected(system_error(path, "lock"));
}

} // namespace

Result<std::optional<Descriptor>> take_lock(const std::filesystem::path &lock_file) {
  for (;;) {
    Descriptor file(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
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
  Descriptor file(::open(lock_file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() && errno == ENOENT) return true;
  if (!file.is_open()) return tl::unexpected(system_error(lock_file, "open"));
  // Shared, so that two who ask do not find each other.
  const auto locked = lock(std::move(file), LOCK_SH, lock_file);
  if (!locked) return tl::unexpected(locked.error());
  return locked->has_value();
}

Result<bool> remove_lock(const std::filesystem::path &lock_file) {
  const auto locked = take_lock(lock_file);
  if (!locked) return tl::unexpected(locked.error());
  if (!*locked) return false;
  if (::unlink(lock_file.c_str()) != 0) return tl::unexpected(system_error(lock_file, "remove"));
  return true;
}

} // namespace onced::queue
