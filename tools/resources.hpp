#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "exit_codes.hpp"

namespace onced::tools {

// What a command is about to take. ZeroMQ and RocksDB end the process where they cannot have a thread or a descriptor,
// so that is found out before.
struct Needs {
  unsigned threads = 0;          // at once
  std::uint64_t descriptors = 0; // open files
  std::size_t memory_bytes = 0;  // address space, beside the stacks of the threads
};

// Raises this process's limit of open files as far as it may, and tries whether it can have all this. What the limit
// was before, or in words what this process cannot have and what to do.
[[nodiscard]] tl::expected<std::uint64_t, std::string> take_resources(const Needs &needs);

// Says on stderr what this process cannot have, and returns the exit code for it. Takes no memory.
ExitCode lacking(std::string_view what) noexcept;

} // namespace onced::tools
