#include "base/inode.hpp"

#include <sys/stat.h>

namespace onced {

std::optional<Inode> inode_at(const std::filesystem::path &path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return Inode{.device = status.st_dev, .number = status.st_ino};
}

std::optional<Inode> inode_of(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return std::nullopt;
  return Inode{.device = status.st_dev, .number = status.st_ino};
}

} // namespace onced
