#include "wire/endpoint_lock.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/endpoint.hpp"

namespace onced::wire {
namespace {

Error unusable(const std::string &endpoint, std::string cause, std::string remedy) {
  return {.code = ErrorCode::endpoint, .concerns = endpoint, .cause = std::move(cause), .remedy = std::move(remedy)};
}

Error taken(const std::string &endpoint) {
  return unusable(endpoint, "another process listens there", "stop that process first, or give another path");
}

// Of the last call.
std::string system_message() {
  return std::generic_category().message(errno);
}

// Whether somebody listens at the path of a socket. One whose process has ended refuses connections.
bool is_heard(const std::string &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false; // ZeroMQ will refuse it
  std::memcpy(address.sun_path, path.data(), path.size());
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe.is_open()) return true; // nobody knows
  const int connected = ::connect(probe.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address);
  return connected == 0 || (errno != ECONNREFUSED && errno != ENOENT);
}

// Whether the path is free, or holds what a process that has ended left there.
Result<void> check_path(const std::string &endpoint, const std::string &path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {}; // nothing there; or ZeroMQ will say why it cannot be used
  if (!S_ISSOCK(status.st_mode)) {
    return tl::unexpected(unusable(endpoint, "what lies there is no socket, and would be removed",
                                   "move it elsewhere, or give another path"));
  }
  if (is_heard(path)) return tl::unexpected(taken(endpoint));
  return {};
}

} // namespace

Result<EndpointLock> EndpointLock::take(const std::string &endpoint) {
  if (!endpoint.starts_with(ipc_scheme)) return EndpointLock();
  const std::string path = endpoint.substr(ipc_scheme.size());
  if (path.empty() || path.front() == '@' || path == "*") return EndpointLock();
  const std::string lock_path = path + ".lock";
  Descriptor file(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    return tl::unexpected(unusable(endpoint, "cannot open its lock " + lock_path + ": " + system_message(),
                                   "give a path in a directory of this user"));
  }
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) return tl::unexpected(taken(endpoint));
  if (auto checked = check_path(endpoint, path); !checked) return tl::unexpected(checked.error());
  return EndpointLock(std::move(file));
}

} // namespace onced::wire
