#pragma once

#include <filesystem>
#include <string>

#include "onced/error.hpp"

namespace onced::rehearsal {

// The content of a regular file. Errors: `not_found`, also where it is of another kind or cannot be read.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path &path);

// SHA-256 in hexadecimal.
[[nodiscard]] std::string hex_sha256(const std::string &bytes);

} // namespace onced::rehearsal
