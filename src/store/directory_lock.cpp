#include <array>
#include <charconv>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onced/store.hpp"
#include "store/descriptor.hpp"

namespace onced {
namespace {

using store::Descriptor;
using store::system_error;

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
  return store::sync_directory(parent);
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

} // namespace

Result<DirectoryLock> DirectoryLock::take(const std::filesystem::path &directory, Mode mode) {
  const bool exclusive = mode == Mode::exclusive;
  if (exclusive) {
    if (auto created = ensure_directory(directory); !created) return tl::unexpected(created.error());
  }
  const auto path = directory / lock_file_name;
  Descriptor descriptor(::open(path.c_str(), (exclusive ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600));
  if (!descriptor.is_open()) return tl::unexpected(system_error(path, "open"));
  if (::flock(descriptor.number(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return tl::unexpected(system_error(path, "lock"));
    return tl::unexpected(held_error(directory, descriptor.number()));
  }
  if (exclusive) {
    if (auto written = write_holder(descriptor.number(), path); !written) return tl::unexpected(written.error());
  }
  return DirectoryLock(descriptor.release());
}

DirectoryLock::DirectoryLock(DirectoryLock &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

DirectoryLock &DirectoryLock::operator=(DirectoryLock &&other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

} // namespace onced
