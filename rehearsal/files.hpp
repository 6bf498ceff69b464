#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "onced/error.hpp"

namespace onced::rehearsal {

// The content of a regular file. Errors: `not_found`: it is absent, of another kind or cannot be read; `corrupt`: it is
// larger than `bytes_max`.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path &path, std::uintmax_t bytes_max);

// A directory of its own among the temporary files, removed at the end.
class ScratchDirectory {
  struct Token {}; // of `make` alone

public:
  // Below TMPDIR or, where that path is longer than `parent_bytes_max`, below /tmp. Errors: `store_unavailable`.
  [[nodiscard]] static Result<std::unique_ptr<ScratchDirectory>> make(const std::string &name,
                                                                      std::size_t parent_bytes_max = std::string::npos);
  ScratchDirectory(Token, std::string path) : path_(std::move(path)) {}
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory &) = delete;
  ScratchDirectory &operator=(const ScratchDirectory &) = delete;

  [[nodiscard]] const std::string &path() const { return path_; }

private:
  std::string path_;
};

// SHA-256 in hexadecimal.
[[nodiscard]] std::string hex_sha256(const std::string &bytes);

} // namespace onced::rehearsal
