#pragma once

#include <filesystem>

#include "base/descriptor.hpp"
#include "onced/error.hpp"

namespace onced {

// Whether a directory that is about to be written into is this user's alone to write: it has this owner, and nobody
// else may write in it, and so put a file or a link in the place of one of ours. Errors: `usage`, with the command that
// would make it right.
[[nodiscard]] Result<void> check_rights(const Descriptor &directory, const std::filesystem::path &path);

// Whether all that is opened in the directory by its name lies in it: no symbolic link, and nothing that is neither a
// file nor a folder, except the socket `control.sock`. A directory that this user may not read is passed over. Errors:
// `usage`, naming it.
[[nodiscard]] Result<void> check_entries(const Descriptor &directory, const std::filesystem::path &path);

} // namespace onced
