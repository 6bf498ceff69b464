#pragma once

#include <filesystem>
#include <string>

#include "rehearsal/json.hpp"

namespace onced::rehearsal {

// The account that this process runs as, with its rights: `ran_as` of a record.
[[nodiscard]] Json account_of_process();

// The machine, and the file system of a directory: `setting` of a record.
[[nodiscard]] Json machine_of(const std::filesystem::path &directory, const std::string &durability);

} // namespace onced::rehearsal
