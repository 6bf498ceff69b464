#include "rehearsal/disk.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/child_process.hpp"

namespace onced::rehearsal {
namespace {

constexpr std::uintmax_t image_bytes = 256UL * 1024 * 1024;
// A log as large as a worker with much memory sets aside does not fit on it.
constexpr const char *small_size = "size=24m";

// EXT4_IOC_SHUTDOWN and its flag EXT4_GOING_FLAGS_NOLOGFLUSH (fs/ext4/ext4.h), which no installed header has.
constexpr unsigned long shutdown_request = 0x8004587d;
constexpr std::uint32_t without_log_flush = 2;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

// Runs a program of the system to its end, its words on stderr unheard. Throws StageUnavailable where it fails.
void run(const std::vector<std::string> &words) {
  const Descriptor unheard = open_null();
  auto program = ChildProcess::start({.words = words, .environment = {}, .errors = unheard.number()});
  if (!program) throw StageUnavailable("cannot run " + words[0] + ": " + reason_of(program.error()));
  if (!program->wait().is_success()) throw StageUnavailable(words[0] + " failed: it may take root, or a loop device");
}

bool write_to(const char *file, const std::string &text) {
  std::ofstream stream(file);
  stream << text;
  return static_cast<bool>(stream.flush());
}

// Everyone is who they were: in a new user namespace nobody is anybody until that is said.
bool keep_account(uid_t user, gid_t group) {
  const auto itself = [](auto id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  return write_to("/proc/self/setgroups", "deny") && write_to("/proc/self/uid_map", itself(user)) &&
         write_to("/proc/self/gid_map", itself(group));
}

} // namespace

std::string enter_own_mounts() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  const int namespaces = CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER);
  if (::unshare(namespaces) != 0) return "no mounts of our own: " + reason_of(errno);
  if (user != 0 && !keep_account(user, group)) return "no account in a user namespace: " + reason_of(errno);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return "no mounts of our own: " + reason_of(errno);
  }
  return {};
}

// --- In memory ----------------------------------------------------------------------------------------------------

SmallDisk::SmallDisk(std::filesystem::path mount_point) : mount_point_(std::move(mount_point)) {
  std::filesystem::create_directories(mount_point_);
  if (::mount("tmpfs", mount_point_.c_str(), "tmpfs", 0, small_size) != 0) {
    throw StageUnavailable("no small file system can be mounted: " + reason_of(errno));
  }
}

SmallDisk::~SmallDisk() {
  ::umount2(mount_point_.c_str(), MNT_DETACH);
  ::rmdir(mount_point_.c_str());
}

void SmallDisk::fill(std::uintmax_t free_bytes) const {
  const std::string block(64UL * 1024, 'x');
  std::ofstream file(mount_point_ / "filler", std::ios::binary);
  while (std::filesystem::space(mount_point_).available > free_bytes &&
         file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

void SmallDisk::free() const {
  std::filesystem::remove(mount_point_ / "filler");
}

// --- With a power switch ------------------------------------------------------------------------------------------

CuttableDisk::CuttableDisk(const std::filesystem::path &directory)
    : image_(directory / "image"), mount_point_(directory / "disk") {
  if (std::filesystem::space(directory).available < image_bytes / 4) {
    throw StageFailure("too little space for a disk in a file: it takes 64 MiB");
  }
  std::ofstream(image_).close();
  std::filesystem::resize_file(image_, image_bytes);
  std::filesystem::create_directory(mount_point_);
  try {
    run({"mkfs.ext4", "-q", "-F", image_.string()});
    mount();
  } catch (const StageUnavailable &) {
    remove();
    throw;
  }
}

CuttableDisk::~CuttableDisk() {
  if (mounted_) ::umount2(mount_point_.c_str(), MNT_DETACH);
  remove();
}

void CuttableDisk::remove() const noexcept {
  ::unlink(image_.c_str());
  ::rmdir(mount_point_.c_str());
}

void CuttableDisk::mount() {
  run({"mount", "-t", "ext4", "-o", "loop", image_.string(), mount_point_.string()});
  mounted_ = true;
}

void CuttableDisk::cut() const {
  const int root = ::open(mount_point_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::uint32_t flags = without_log_flush;
  const int result = root < 0 ? -1 : ::ioctl(root, shutdown_request, &flags);
  const int error = errno;
  if (root >= 0) ::close(root);
  if (result != 0) throw StageUnavailable("the file system cannot be shut down: " + reason_of(error));
}

void CuttableDisk::power_on(const Patience &patience) {
  int error = 0;
  patience.wait_until(
      [&] {
        error = ::umount2(mount_point_.c_str(), 0) == 0 ? 0 : errno;
        return error != EBUSY;
      },
      "the disk to be let go of");
  if (error != 0) throw StageFailure("cannot unmount the disk: " + reason_of(error));
  mounted_ = false;
  try {
    mount();
  } catch (const StageUnavailable &failure) { // it could be mounted before
    throw StageFailure(failure.what());
  }
}

} // namespace onced::rehearsal
