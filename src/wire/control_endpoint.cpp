#include "wire/control_endpoint.hpp"

#include <cerrno>
#include <charconv>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace onced::wire {
namespace {

constexpr const char *socket_name = "control.sock";
constexpr const char *folder_name = "operators";
constexpr const char *socket_in_folder = "operators/control.sock";

std::optional<gid_t> find_group(const std::string &name) {
  gid_t number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  if (read.ec == std::errc() && read.ptr == name.data() + name.size()) return number;
  constexpr std::size_t buffer_bytes_max = 1024UL * 1024; // a group's members are in it
  std::vector<char> buffer(1024);
  group entry{};
  group *found = nullptr;
  int failed = 0;
  while ((failed = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < buffer_bytes_max)
    buffer.resize(buffer.size() * 4);
  if (failed != 0 || found == nullptr) return std::nullopt;
  return entry.gr_gid;
}

// Gives a folder to the group, with a mode. Only the owner's own groups, unless it is root, can be given something.
Result<void> give(const Descriptor &folder, const std::filesystem::path &path, gid_t group, mode_t mode) {
  if (::fchown(folder.number(), static_cast<uid_t>(-1), group) == 0 && ::fchmod(folder.number(), mode) == 0) return {};
  if (errno != EPERM) return tl::unexpected(system_error(path, "give to the group"));
  return tl::unexpected(Error{.code = ErrorCode::usage,
                              .concerns = "--operator-group",
                              .cause = "this user is no member of group " + std::to_string(group),
                              .remedy = "add the worker's user to that group"});
}

Descriptor open_folder(int at, const char *path) {
  return Descriptor(::openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// What an earlier worker with a group has left.
void remove_folder(const Descriptor &directory) {
  ::unlinkat(directory.number(), socket_in_folder, 0);
  ::unlinkat(directory.number(), folder_name, AT_REMOVEDIR);
}

Error not_allowed(const std::filesystem::path &directory) {
  return {.code = ErrorCode::store_unavailable,
          .concerns = directory.string(),
          .cause = "this user may not operate its worker",
          .remedy = "run as the owner of the directory, or as a member of the worker's --operator-group"};
}

} // namespace

Result<ControlEndpoint> ControlEndpoint::in(const std::filesystem::path &directory) {
  constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  Descriptor opened(::open(directory.c_str(), flags));
  if (!opened.is_open()) return tl::unexpected(system_error(directory, "open"));
  Descriptor folder(::openat(opened.number(), folder_name, flags | O_NOFOLLOW));
  if (!folder.is_open() && errno == EACCES) return tl::unexpected(not_allowed(directory));
  if (!folder.is_open()) folder = std::move(opened);
  if (::faccessat(folder.number(), socket_name, W_OK, 0) != 0 && errno == EACCES) {
    return tl::unexpected(not_allowed(directory));
  }
  return ControlEndpoint(std::move(folder));
}

Result<ControlEndpoint> ControlEndpoint::make(const std::filesystem::path &directory, const std::string &group) {
  Descriptor opened = open_folder(AT_FDCWD, directory.c_str());
  if (!opened.is_open()) return tl::unexpected(system_error(directory, "open"));
  if (group.empty()) {
    remove_folder(opened);
    return ControlEndpoint(std::move(opened));
  }
  const auto number = find_group(group);
  if (!number) {
    return tl::unexpected(Error{.code = ErrorCode::usage,
                                .concerns = "--operator-group " + group,
                                .cause = "there is no such group",
                                .remedy = "give the name or number of a group of this system (getent group)"});
  }
  constexpr mode_t owner_only = 0700;
  const auto path = directory / folder_name;
  if (::mkdirat(opened.number(), folder_name, owner_only) != 0 && errno != EEXIST) {
    return tl::unexpected(system_error(path, "create the folder"));
  }
  Descriptor folder = open_folder(opened.number(), folder_name);
  if (!folder.is_open()) return tl::unexpected(system_error(path, "open"));
  // All else in the directory is closed before the directory is opened.
  if (::fchmodat(opened.number(), "db", owner_only, 0) != 0) return tl::unexpected(system_error(directory, "close"));
  if (auto given = give(folder, path, *number, 0750); !given) return tl::unexpected(given.error());
  if (auto given = give(opened, directory, *number, 0710); !given) return tl::unexpected(given.error());
  ::unlinkat(opened.number(), socket_name, 0); // nobody is to ask there
  return ControlEndpoint(std::move(folder), number);
}

Result<void> ControlEndpoint::set_rights() const {
  const mode_t mode = group_ ? 0660 : 0600;
  const bool given =
      !group_ || ::fchownat(folder_.number(), socket_name, static_cast<uid_t>(-1), *group_, AT_SYMLINK_NOFOLLOW) == 0;
  if (given && ::fchmodat(folder_.number(), socket_name, mode, 0) == 0) return {};
  return tl::unexpected(system_error(socket_name, "set the rights"));
}

std::string ControlEndpoint::endpoint() const {
  return "ipc:///proc/self/fd/" + std::to_string(folder_.number()) + "/" + socket_name;
}

} // namespace onced::wire
