#include "base/scratch_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

namespace onced {
namespace {

ScratchDirectory made_or_thrown(const std::filesystem::path &parent) {
  auto made = ScratchDirectory::make(parent);
  if (!made) throw std::runtime_error(describe(made.error()));
  return std::move(*made);
}

} // namespace

Result<ScratchDirectory> ScratchDirectory::make(std::filesystem::path parent) {
  const bool is_temporary = parent.empty();
  std::error_code error;
  if (is_temporary) parent = std::filesystem::temp_directory_path(error);
  std::string name = (parent / "onced-XXXXXX").string();
  if (!error && ::mkdtemp(name.data()) != nullptr) return ScratchDirectory(name, true);
  const bool absent = !error && errno == ENOENT;
  if (!error) error.assign(errno, std::generic_category());
  return tl::unexpected(Error{.code = absent && !is_temporary ? ErrorCode::not_found : ErrorCode::store_unavailable,
                              .concerns = parent.empty() ? "TMPDIR" : parent.string(),
                              .cause = "no directory can be made there: " + error.message(),
                              .remedy = is_temporary ? "set TMPDIR to a directory that may be written to"
                                                     : "give a directory that may be written to"});
}

ScratchDirectory::ScratchDirectory(const std::filesystem::path &parent) : ScratchDirectory(made_or_thrown(parent)) {}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (is_removed_) std::filesystem::remove_all(path_, ignored);
}

} // namespace onced
