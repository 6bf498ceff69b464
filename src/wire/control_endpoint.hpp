#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/descriptor.hpp"
#include "onced/error.hpp"

namespace onced::wire {

// The endpoint of `control.sock` in a data directory, reached through an open descriptor of the socket's folder: the
// address of a Unix socket holds 107 bytes, and a directory's path may be longer. The socket lies in the directory
// itself, for the owner alone; or, where a group may use it too, in the folder `operators` of the directory. Valid as
// long as this object.
class ControlEndpoint {
public:
  // Where to ask. Errors: `not_found`; `store_unavailable`: also where this user may not use the socket.
  [[nodiscard]] static Result<ControlEndpoint> in(const std::filesystem::path &directory);

  // Where a worker binds, which holds the directory. With a group, by name or number, the folder is made, and the group
  // may enter the directory. Errors: `usage`: no such group, or this user may give nothing to it; `store_unavailable`.
  [[nodiscard]] static Result<ControlEndpoint> make(const std::filesystem::path &directory, const std::string &group);

  // Once the socket is bound: its rights. Errors: `store_unavailable`.
  [[nodiscard]] Result<void> set_rights() const;

  [[nodiscard]] std::string endpoint() const;

private:
  explicit ControlEndpoint(Descriptor folder, std::optional<gid_t> group = std::nullopt)
      : folder_(std::move(folder)), group_(group) {}

  Descriptor folder_;
  std::optional<gid_t> group_;
};

} // namespace onced::wire
