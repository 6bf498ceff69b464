#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rehearsal/json.hpp"

namespace onced::rehearsal {

// What does not fit together in a record of the right form and the files beside it in its directory: the rules of "What
// --verify holds" in docs/rehearsal-record.md. A text each, such as "poison: seen.effects does not follow from …".
[[nodiscard]] std::vector<std::string> problems_of_rules(const std::filesystem::path &directory, const Json &record);

} // namespace onced::rehearsal
