#pragma once

#include <filesystem>
#include <utility>

#include "onced/error.hpp"

namespace onced {

// A new empty directory, removed with everything in it at the end.
class ScratchDirectory {
public:
  // In `parent`; where that is empty, among the temporary files (TMPDIR). Errors: `not_found`: there is no such parent;
  // `store_unavailable`.
  [[nodiscard]] static Result<ScratchDirectory> make(std::filesystem::path parent = {});
  // Somebody else's directory, which is left alone at the end.
  [[nodiscard]] static ScratchDirectory borrowed(std::filesystem::path path) { return {std::move(path), false}; }
  // As `make`; throws its error as std::runtime_error.
  explicit ScratchDirectory(const std::filesystem::path &parent = {});
  ~ScratchDirectory();
  ScratchDirectory(ScratchDirectory &&other) noexcept
      : path_(std::move(other.path_)), is_removed_(std::exchange(other.is_removed_, false)) {}
  ScratchDirectory &operator=(ScratchDirectory &&) = delete;

  [[nodiscard]] const std::filesystem::path &path() const { return path_; }
  // It stays at the end.
  void keep() { is_removed_ = false; }

private:
  ScratchDirectory(std::filesystem::path path, bool is_removed) : path_(std::move(path)), is_removed_(is_removed) {}

  std::filesystem::path path_;
  bool is_removed_ = false;
};

} // namespace onced
