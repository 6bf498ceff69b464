#include "base/directory_rights.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace onced {
namespace {

constexpr std::string_view socket_name = "control.sock";
// Those that we make in a data directory or outbox.
constexpr std::array<std::string_view, 3> folder_names{"db", "handler-locks", "operators"};

Error refused(const std::filesystem::path &path, std::string cause, std::string remedy) {
  return {.code = ErrorCode::usage, .concerns = path.string(), .cause = std::move(cause), .remedy = std::move(remedy)};
}

// The way out where the directory must stay as it is.
std::string folder_below(const std::filesystem::path &path) {
  return "or, where it must stay so (a volume), give a folder below it, which is made with the right mode: " +
         (path / "onced").string();
}

enum class EntryKind : std::uint8_t { file, folder, socket, link, other };

EntryKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::file;
  if (S_ISDIR(mode)) return EntryKind::folder;
  if (S_ISSOCK(mode)) return EntryKind::socket;
  return S_ISLNK(mode) ? EntryKind::link : EntryKind::other;
}

Result<void> check_entry(std::string_view name, EntryKind kind, const std::filesystem::path &path) {
  if (kind == EntryKind::link) {
    return tl::unexpected(refused(path, "is a symbolic link, and what lies in this directory must be in it",
                                  "look where it points to and who made it; then remove the link, or put the file in "
                                  "its place"));
  }
  const bool is_ours =
      name == socket_name ? kind == EntryKind::socket : kind == EntryKind::file || kind == EntryKind::folder;
  if (is_ours) return {};
  return tl::unexpected(refused(path, name == socket_name ? "is no socket" : "is neither a file nor a folder",
                                "look who made it; then move it elsewhere"));
}

struct CloseFolder {
  void operator()(DIR *folder) const { ::closedir(folder); }
};

} // namespace

Result<void> check_rights(const Descriptor &directory, const std::filesystem::path &path) {
  struct stat status {};
  if (::fstat(directory.number(), &status) != 0) return tl::unexpected(system_error(path, "look at"));
  const std::string user = std::to_string(::geteuid());
  if (status.st_uid != ::geteuid()) {
    return tl::unexpected(refused(path,
                                  "belongs to user " + std::to_string(status.st_uid) + ", and this is user " + user,
                                  "run as its owner, or make it this user's (chown -R " + user + " " + path.string() +
                                      "); " + folder_below(path)));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return tl::unexpected(refused(path, "others may write in it, and so replace or redirect its files",
                                "take that right from them (chmod go-w " + path.string() + "); " + folder_below(path)));
}

Result<void> check_entries(const Descriptor &directory, const std::filesystem::path &path) {
  Descriptor readable(::openat(directory.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable.is_open() && errno == EACCES) return {};
  if (!readable.is_open()) return tl::unexpected(system_error(path, "open"));
  const std::unique_ptr<DIR, CloseFolder> folder(::fdopendir(readable.number()));
  if (!folder) return tl::unexpected(system_error(path, "read"));
  static_cast<void>(readable.release());                  // closed with the folder
  while (const dirent *entry = ::readdir(folder.get())) { // NOLINT(concurrency-mt-unsafe): the stream is ours alone
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    struct stat status {};
    if (::fstatat(directory.number(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue; // gone meanwhile
    const EntryKind kind = kind_of(status.st_mode);
    if (auto checked = check_entry(name, kind, path / name); !checked) return checked;
    const bool is_ours = std::find(folder_names.begin(), folder_names.end(), name) != folder_names.end();
    if (kind != EntryKind::folder || !is_ours) continue;
    const Descriptor inner(::openat(directory.number(), entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inner.is_open()) continue;
    if (auto checked = check_entries(inner, path / name); !checked) return checked;
  }
  return {};
}

} // namespace onced
