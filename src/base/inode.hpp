#pragma once

#include <filesystem>
#include <optional>

#include <sys/types.h>

namespace onced {

// What a path names, whatever it is called.
struct Inode {
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const Inode &) const = default;
};

// One system call. A link is not followed. Nothing: there is nothing at this path, or it cannot be looked at.
[[nodiscard]] std::optional<Inode> inode_at(const std::filesystem::path &path);
// Of an open file.
[[nodiscard]] std::optional<Inode> inode_of(int descriptor);

} // namespace onced
