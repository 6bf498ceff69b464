#include "rehearsal/files.hpp"

#include <fstream>
#include <iterator>

#include "onced/digest.hpp"

namespace onced::rehearsal {

Result<std::string> read_file(const std::filesystem::path &path) {
  std::error_code ignored;
  std::ifstream file;
  // To read a directory throws, and to open a pipe waits.
  if (std::filesystem::is_regular_file(path, ignored)) file.open(path, std::ios::binary);
  if (!file.is_open()) {
    return tl::unexpected(Error{ErrorCode::not_found, path.string(), "it cannot be read", "check the path"});
  }
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

std::string hex_sha256(const std::string &bytes) {
  return to_hex(Digester().plain(bytes).view());
}

} // namespace onced::rehearsal
