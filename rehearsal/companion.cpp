#include "rehearsal/companion.hpp"

#include <system_error>

namespace onced::rehearsal {

std::filesystem::path companion_of(const std::string &command, const std::string &which) {
  const std::filesystem::path beside = command + "-" + which;
  const std::filesystem::path installed =
      (beside.parent_path() / ONCED_REHEARSAL_PROGRAMS / beside.filename()).lexically_normal();
  for (const std::filesystem::path &path : {beside, installed}) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

} // namespace onced::rehearsal
