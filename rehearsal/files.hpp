#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "onced/error.hpp"

namespace onced::rehearsal {

// The content of a regular file. Errors: `not_found`: it is absent, of another kind or cannot be read; `corrupt`: it is
// larger than `bytes_max`.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path &path, std::uintmax_t bytes_max);

// SHA-256 in hexadecimal.
[[nodiscard]] std::string hex_sha256(const std::string &bytes);

} // namespace onced::rehearsal
