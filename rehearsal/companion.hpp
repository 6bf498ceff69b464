#pragma once

#include <filesystem>
#include <string>

namespace onced::rehearsal {

// The program NAME-`which` that belongs to the command NAME: beside the command, as in a build, or where an
// installation keeps it. Empty: it is in neither place.
[[nodiscard]] std::filesystem::path companion_of(const std::string &command, const std::string &which);

} // namespace onced::rehearsal
