#include "power/disk.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process.hpp"

namespace onced::testing {
namespace {

constexpr std::uintmax_t image_bytes = 256UL * 1024 * 1024;

// EXT4_IOC_SHUTDOWN and its flag EXT4_GOING_FLAGS_NOLOGFLUSH (fs/ext4/ext4.h), which no installed header has.
constexpr unsigned long shutdown_request = 0x8004587d;
constexpr std::uint32_t without_log_flush = 2;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

// Runs a program of the system to its end. Throws DiskUnavailable where it fails.
void run(std::vector<std::string> words) {
  std::vector<char *> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ);
  if (error != 0) throw DiskUnavailable("cannot run " + words[0] + ": " + reason_of(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) throw DiskUnavailable(words[0] + " failed");
}

} // namespace

void enter_own_mounts() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    throw DiskUnavailable("no mounts of our own: " + reason_of(errno));
  }
}

CuttableDisk::CuttableDisk(const std::filesystem::path &directory)
    : image_(directory / "image"), mount_point_(directory / "disk") {
  std::ofstream(image_).close();
  std::filesystem::resize_file(image_, image_bytes);
  std::filesystem::create_directory(mount_point_);
  run({"mkfs.ext4", "-q", "-F", image_.string()});
  mount();
}

CuttableDisk::~CuttableDisk() {
  if (mounted_) ::umount2(mount_point_.c_str(), MNT_DETACH);
}

void CuttableDisk::mount() {
  run({"mount", "-t", "ext4", "-o", "loop", image_.string(), mount_point_.string()});
  mounted_ = true;
}

void CuttableDisk::unmount() {
  int error = 0;
  const bool unmounted = eventually([&] {
    error = ::umount2(mount_point_.c_str(), 0) == 0 ? 0 : errno;
    return error != EBUSY;
  });
  if (!unmounted || error != 0) throw std::runtime_error("cannot unmount the disk: " + reason_of(error));
  mounted_ = false;
}

void CuttableDisk::cut() const {
  const int root = ::open(mount_point_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::uint32_t flags = without_log_flush;
  const int result = root < 0 ? -1 : ::ioctl(root, shutdown_request, &flags);
  const int error = errno;
  if (root >= 0) ::close(root);
  if (result != 0) throw DiskUnavailable("the file system cannot be shut down: " + reason_of(error));
}

void CuttableDisk::power_on() {
  unmount();
  try {
    mount();
  } catch (const DiskUnavailable &failure) { // it could be mounted before
    throw std::runtime_error(failure.what());
  }
}

} // namespace onced::testing
