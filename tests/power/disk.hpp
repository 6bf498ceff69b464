#pragma once

#include <filesystem>
#include <stdexcept>

namespace onced::testing {

// There can be no such disk here: no right to mount, no loop devices, no mkfs.ext4. Says which.
class DiskUnavailable : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// Gives this process and its children mounts that nobody else sees and that the kernel undoes, with their loop devices,
// when the last of them ends, however it ends. Throws DiskUnavailable.
void enter_own_mounts();

// An ext4 file system of its own in a sparse file, on a loop device, whose power can be cut.
class CuttableDisk {
public:
  // Makes it in `directory` and mounts it. Throws DiskUnavailable.
  explicit CuttableDisk(const std::filesystem::path &directory);
  ~CuttableDisk();
  CuttableDisk(const CuttableDisk &) = delete;
  CuttableDisk &operator=(const CuttableDisk &) = delete;

  [[nodiscard]] const std::filesystem::path &path() const { return mount_point_; }

  // From here on nothing reaches the device any more, not even what the file system's journal holds, and every call on
  // its files fails. What was not synced is lost.
  void cut() const;
  // Unmounts and mounts it again, which replays the journal. No file on it may be open.
  void power_on();

private:
  void mount();
  void unmount();

  std::filesystem::path image_;
  std::filesystem::path mount_point_;
  bool mounted_ = false;
};

} // namespace onced::testing
