#include "base/descriptor.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace onced {

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Error system_error(const std::filesystem::path &path, const std::string &doing) {
  const int number = errno;
  const bool absent = number == ENOENT || number == ENOTDIR;
  return {.code = absent ? ErrorCode::not_found : ErrorCode::store_unavailable,
          .concerns = path.string(),
          .cause = "cannot " + doing + ": " + std::generic_category().message(number),
          .remedy = absent ? "check the path" : "check the disk, its free space and the rights of this user"};
}

Result<void> sync_directory(const std::filesystem::path &directory) {
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return tl::unexpected(system_error(directory, "open"));
  if (::fsync(opened.number()) != 0) return tl::unexpected(system_error(directory, "sync"));
  return {};
}

} // namespace onced
