#include <array>
#include <charconv>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/directory_kind.hpp"
#include "base/directory_rights.hpp"
#include "base/inode.hpp"
#include "onced/store.hpp"

namespace onced {
namespace {

constexpr std::string_view lock_file_name = "onced.lock";

Result<void> ensure_directory(const std::filesystem::path &directory) {
  std::error_code error;
  if (std::filesystem::is_directory(directory, error)) return {};
  const auto parent = std::filesystem::absolute(directory, error).parent_path();
  std::filesystem::create_directories(parent, error);
  // 0700: who may enter the directory may operate the worker.
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return tl::unexpected(system_error(directory, "create the directory"));
  }
  return sync_directory(parent);
}

// Who holds the lock exclusively, from what that process wrote into the file. 0: unknown.
int holder_of(int descriptor) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  int holder = 0;
  if (size > 0) std::from_chars(text.data(), text.data() + size, holder);
  return holder;
}

Error held_error(const std::filesystem::path &directory, int descriptor) {
  Error error{.code = ErrorCode::locked, .concerns = directory.string(), .cause = {}, .remedy = {}};
  if (::flock(descriptor, LOCK_SH | LOCK_NB) == 0) {
    error.cause = "a command is reading the directory";
    error.remedy = "try again when it has ended";
  } else {
    error.cause = "the directory is held by process " + std::to_string(holder_of(descriptor));
    error.remedy = "stop that process first, or use another directory";
  }
  return error;
}

Result<void> write_holder(int descriptor, const std::filesystem::path &path) {
  const std::string holder = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    return tl::unexpected(system_error(path, "write"));
  }
  return {};
}

// The directory itself, which may be named by a link, and its path without one.
Result<std::pair<std::filesystem::path, Descriptor>> open_directory(const std::filesystem::path &directory) {
  std::error_code error;
  auto path = std::filesystem::canonical(directory, error);
  errno = error.value();
  if (error) return tl::unexpected(system_error(directory, "open"));
  Descriptor opened(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.is_open()) return tl::unexpected(system_error(directory, "open"));
  return std::pair(std::move(path), std::move(opened));
}

// Of the lock file. One who may not read it may still ask the worker, which holds it, where the worker lets him.
Error opening_error(const std::filesystem::path &directory, bool exclusive) {
  const int number = errno;
  if (!exclusive && number == EACCES) {
    return {.code = ErrorCode::locked,
            .concerns = directory.string(),
            .cause = "this user may not read the directory",
            .remedy = "run as its owner, or as a member of the worker's --operator-group while the worker runs"};
  }
  if (!exclusive && number == ENOENT) {
    return {.code = ErrorCode::not_found,
            .concerns = directory.string(),
            .cause = "no worker and no sender has used this directory",
            .remedy = "check the path: it must be a worker's --data"};
  }
  return system_error(directory / lock_file_name, "open");
}

} // namespace

struct DirectoryLock::Identity {
  Inode directory;
  Inode file;
};

Result<DirectoryLock> DirectoryLock::take(const std::filesystem::path &directory, Mode mode) {
  const bool exclusive = mode == Mode::exclusive;
  if (exclusive) {
    if (auto created = ensure_directory(directory); !created) return tl::unexpected(created.error());
  }
  auto opened = open_directory(directory);
  if (!opened) return tl::unexpected(opened.error());
  const auto &[path, folder] = *opened;
  if (auto checked = exclusive ? check_rights(folder, path) : Result<void>{}; !checked) {
    return tl::unexpected(checked.error());
  }
  if (auto checked = check_entries(folder, path); !checked) return tl::unexpected(checked.error());
  if (auto expected = expect_no_record(path); !expected) return tl::unexpected(expected.error());

  const auto lock_path = path / lock_file_name;
  const int flags = (exclusive ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC;
  Descriptor descriptor(::openat(folder.number(), lock_file_name.data(), flags, 0600));
  if (!descriptor.is_open()) return tl::unexpected(opening_error(directory, exclusive));
  if (::flock(descriptor.number(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return tl::unexpected(system_error(lock_path, "lock"));
    return tl::unexpected(held_error(directory, descriptor.number()));
  }
  if (exclusive) {
    if (auto written = write_holder(descriptor.number(), lock_path); !written) return tl::unexpected(written.error());
  }
  const auto folder_inode = inode_of(folder.number());
  const auto file_inode = inode_of(descriptor.number());
  if (!folder_inode || !file_inode) return tl::unexpected(system_error(lock_path, "look at"));
  auto identity = std::make_unique<Identity>();
  *identity = {.directory = *folder_inode, .file = *file_inode};
  DirectoryLock lock(descriptor.release(), path, std::move(identity));
  // Removed before it was locked, it would be a lock that nobody else sees.
  if (auto checked = lock.check(); !checked) return tl::unexpected(checked.error());
  return lock;
}

Result<void> DirectoryLock::check() const {
  const bool same =
      inode_at(directory_) == identity_->directory && inode_at(directory_ / lock_file_name) == identity_->file;
  if (same) return {};
  return tl::unexpected(Error{.code = ErrorCode::store_unavailable,
                              .concerns = directory_.string(),
                              .cause = "the directory or its lock was deleted or replaced while this process held it",
                              .remedy = "put it back as it was, or stop this process; nothing has been acknowledged "
                                        "since"});
}

DirectoryLock::DirectoryLock(int descriptor, std::filesystem::path directory, std::unique_ptr<Identity> identity)
    : descriptor_(descriptor), directory_(std::move(directory)), identity_(std::move(identity)) {}

DirectoryLock::DirectoryLock(DirectoryLock &&other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), directory_(std::move(other.directory_)),
      identity_(std::move(other.identity_)) {}

DirectoryLock &DirectoryLock::operator=(DirectoryLock &&other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(directory_, other.directory_);
  std::swap(identity_, other.identity_);
  return *this;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

} // namespace onced
