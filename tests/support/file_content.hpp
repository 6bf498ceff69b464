#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace onced::testing {

// Every byte of a file; none where there is no file.
[[nodiscard]] inline std::string content_of(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[nodiscard]] inline std::size_t lines_in(const std::filesystem::path &path) {
  const std::string content = content_of(path);
  return static_cast<std::size_t>(std::count(content.begin(), content.end(), '\n'));
}

// How many entries a folder has.
[[nodiscard]] inline std::ptrdiff_t files_in(const std::filesystem::path &folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

} // namespace onced::testing
