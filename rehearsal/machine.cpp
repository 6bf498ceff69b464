#include "rehearsal/machine.hpp"

#include <fstream>
#include <thread>

#include <linux/magic.h>
#include <pwd.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace onced::rehearsal {
namespace {

std::string user_name() {
  const passwd *user = ::getpwuid(::geteuid()); // NOLINT(concurrency-mt-unsafe): nobody else asks
  return user == nullptr ? "unknown" : user->pw_name;
}

// The effective capabilities, as the kernel prints them.
std::string rights_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) return "effective capabilities " + line.substr(line.find_last_of(" \t") + 1);
  }
  return "unknown";
}

std::string file_system_of(const std::filesystem::path &directory) {
  struct statfs status {};
  if (::statfs(directory.c_str(), &status) != 0) return "unknown";
  const auto type = static_cast<unsigned long>(status.f_type);
  if (type == TMPFS_MAGIC) return "tmpfs: in memory, where a sync costs nothing";
  if (type == EXT4_SUPER_MAGIC) return "ext4";
  if (type == XFS_SUPER_MAGIC) return "xfs";
  if (type == BTRFS_SUPER_MAGIC) return "btrfs";
  if (type == OVERLAYFS_SUPER_MAGIC) return "overlayfs";
  return "type " + std::to_string(type);
}

} // namespace

Json account_of_process() {
  return {{"user", user_name()}, {"uid", ::geteuid()}, {"rights", rights_of_process()}};
}

Json machine_of(const std::filesystem::path &directory, const std::string &durability) {
  utsname system{};
  ::uname(&system);
  return {{"host", system.nodename},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"cores", std::thread::hardware_concurrency()},
          {"file_system", file_system_of(directory)},
          {"durability", durability}};
}

} // namespace onced::rehearsal
