#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/mount.h>

#include "support/temp_directory.hpp"

namespace onced::testing {

// A file system of its own, a few MiB large, in memory. It takes root to mount one.
class SmallDisk {
public:
  SmallDisk() { mounted_ = ::mount("tmpfs", path().c_str(), "tmpfs", 0, "size=24m") == 0; }
  ~SmallDisk() {
    if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk &) = delete;
  SmallDisk &operator=(const SmallDisk &) = delete;

  [[nodiscard]] bool is_mounted() const { return mounted_; }
  [[nodiscard]] const std::filesystem::path &path() const { return directory_.path(); }

  // Fills it to its end, or until so much is free.
  void fill(std::uintmax_t free_bytes = 0) const {
    const std::string block(64UL * 1024, 'x');
    std::ofstream file(path() / "filler", std::ios::binary);
    while (std::filesystem::space(path()).available > free_bytes &&
           file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void free() const { std::filesystem::remove(path() / "filler"); }

private:
  TempDirectory directory_;
  bool mounted_ = false;
};

} // namespace onced::testing
