#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace onced::testing {

// A new empty directory, removed with everything in it at the end.
class TempDirectory {
public:
  // Somebody else's directory instead, which is left alone at the end.
  explicit TempDirectory(std::filesystem::path borrowed) : path_(std::move(borrowed)), owned_(false) {}

  TempDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "onced-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
    path_ = name;
  }
  ~TempDirectory() {
    if (!owned_) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory &) = delete;
  TempDirectory &operator=(const TempDirectory &) = delete;

  [[nodiscard]] const std::filesystem::path &path() const { return path_; }

private:
  std::filesystem::path path_;
  bool owned_ = true;
};

// How many entries a folder has.
inline std::ptrdiff_t files_in(const std::filesystem::path &folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

} // namespace onced::testing
