#pragma once

#include <string>

#include "base/descriptor.hpp"
#include "onced/error.hpp"

namespace onced::wire {

// Holds the path of an ipc endpoint against every other process that is about to bind it. ZeroMQ removes whatever lies
// at the path before it binds: another worker's socket, whose senders it so takes over in silence, or a file. The lock
// is a kernel lock on PATH.lock, a file that stays; it ends with the process.
class EndpointLock {
public:
  // Take it before the bind, and keep it as long as the socket. Holds nothing where the transport refuses a second bind
  // by itself: tcp, and abstract ipc names (`ipc://@name`); and where ZeroMQ chooses the name (`ipc://*`). Errors:
  // `endpoint`: another process holds the path or listens there, what lies there is no socket, or the lock file cannot
  // be made.
  [[nodiscard]] static Result<EndpointLock> take(const std::string &endpoint);

private:
  EndpointLock() = default;
  explicit EndpointLock(Descriptor file) : file_(std::move(file)) {}

  Descriptor file_; // not open: there is nothing to hold
};

} // namespace onced::wire
