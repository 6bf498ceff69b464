#include "rehearsal/files.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "onced/digest.hpp"

namespace onced::rehearsal {

Result<std::string> read_file(const std::filesystem::path &path) {
  std::error_code ignored;
  std::ifstream file;
  // To read a directory throws, and to open a pipe waits.
  const bool is_ours =
      std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) <= file_bytes_max;
  if (is_ours) file.open(path, std::ios::binary);
  if (!file.is_open()) {
    return tl::unexpected(Error{ErrorCode::not_found, path.string(), "it cannot be read", "check the path"});
  }
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

Result<std::unique_ptr<ScratchDirectory>> ScratchDirectory::make(const std::string &name,
                                                                 std::size_t parent_bytes_max) {
  std::error_code error;
  std::string parent = std::filesystem::temp_directory_path(error).string();
  if (!error && parent.size() > parent_bytes_max) parent = "/tmp";
  std::string path = parent + "/" + name + "-XXXXXX";
  if (!error && ::mkdtemp(path.data()) != nullptr) return std::make_unique<ScratchDirectory>(Token(), path);
  return tl::unexpected(Error{ErrorCode::store_unavailable, error ? "TMPDIR" : path, "no directory can be made there",
                              "set TMPDIR to a directory that may be written to"});
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string hex_sha256(const std::string &bytes) {
  return to_hex(Digester().plain(bytes).view());
}

} // namespace onced::rehearsal
