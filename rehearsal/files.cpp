#include "rehearsal/files.hpp"

#include <fstream>

#include "onced/digest.hpp"

namespace onced::rehearsal {

Result<std::string> read_file(const std::filesystem::path &path, std::uintmax_t bytes_max) {
  std::error_code ignored;
  std::ifstream file;
  // To read a directory throws, and to open a pipe waits.
  if (std::filesystem::is_regular_file(path, ignored)) file.open(path, std::ios::binary);
  if (!file.is_open()) {
    return tl::unexpected(Error{ErrorCode::not_found, path.string(), "it cannot be read", "check the path"});
  }
  // It may grow while it is read.
  std::string text;
  std::string chunk(64UL * 1024, '\0');
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    text.append(chunk, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() <= bytes_max) continue;
    return tl::unexpected(Error{ErrorCode::corrupt, path.string(),
                                "it is larger than " + std::to_string(bytes_max) + " bytes", "check the path"});
  }
  return text;
}

std::string hex_sha256(const std::string &bytes) {
  return to_hex(Digester().plain(bytes).view());
}

} // namespace onced::rehearsal
