#pragma once

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

} // namespace onced::testing
