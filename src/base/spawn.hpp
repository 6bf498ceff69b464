#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <tl/expected.hpp>

#include "base/descriptor.hpp"

namespace onced {

// A program to be started, and all that it gets.
struct Program {
  std::string path;
  std::vector<std::string> arguments; // its name first
  std::map<std::string, std::string> environment;
  // Raised, all of them. The lock keeps its number in the child.
  Descriptor input;
  Descriptor output;
  Descriptor errors;
  Descriptor lock;
  std::optional<std::uint64_t> descriptors_max = {}; // its soft limit of open files; nothing: this process's
};

// The same open file under a number that no standard stream has, and no script gives to a file of its own. Not open
// where that cannot be, with errno set.
[[nodiscard]] Descriptor raised(const Descriptor &file);

// Starts it as the leader of a process group of its own, to be killed when the calling thread ends. With no other
// descriptor, no blocked and no ignored signal. The error is an errno.
[[nodiscard]] tl::expected<pid_t, int> spawn(const Program &program);

} // namespace onced
