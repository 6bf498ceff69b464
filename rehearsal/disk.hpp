#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "rehearsal/patience.hpp"

namespace onced::rehearsal {

// Gives this process, while it has one thread, and its children mounts that nobody else sees and that the kernel
// undoes, with their loop devices, when the last of them ends, however it ends. Without root it takes a user namespace,
// in which the account stays what it was. Returns what stands in the way; empty: nothing.
[[nodiscard]] std::string enter_own_mounts();

// A file system of its own in memory, a few MiB large. Needs mounts of our own.
class SmallDisk {
public:
  // Mounts it at `mount_point`, which is made. Throws StageUnavailable.
  explicit SmallDisk(std::filesystem::path mount_point);
  ~SmallDisk();
  SmallDisk(const SmallDisk &) = delete;
  SmallDisk &operator=(const SmallDisk &) = delete;

  [[nodiscard]] const std::filesystem::path &path() const { return mount_point_; }

  // Fills it to its end, or until so much is free.
  void fill(std::uintmax_t free_bytes = 0) const;
  // Takes away what `fill` has written.
  void free() const;

private:
  std::filesystem::path mount_point_;
};

// An ext4 file system of its own in a sparse file, on a loop device, whose power can be cut. It takes root, and mounts
// of our own.
class CuttableDisk {
public:
  // Makes it in `directory` and mounts it. Throws StageUnavailable: no right to mount, no loop devices, no mkfs.ext4.
  explicit CuttableDisk(const std::filesystem::path &directory);
  ~CuttableDisk();
  CuttableDisk(const CuttableDisk &) = delete;
  CuttableDisk &operator=(const CuttableDisk &) = delete;

  [[nodiscard]] const std::filesystem::path &path() const { return mount_point_; }

  // From here on nothing reaches the device any more, not even what the file system's journal holds, and every call on
  // its files fails. What was not synced is lost.
  void cut() const;
  // Unmounts and mounts it again, which replays the journal. No file on it may be open: throws StageFailure where one
  // stays so.
  void power_on(const Patience &patience);

private:
  void mount();
  void remove() const noexcept;

  std::filesystem::path image_;
  std::filesystem::path mount_point_;
  bool mounted_ = false;
};

} // namespace onced::rehearsal
