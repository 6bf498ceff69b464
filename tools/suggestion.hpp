#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onced::tools {

// Of the names that there are, the one that `word` is most like, where a slip of the hand leads from one to the other:
// letters swapped, wrong, missing or too many, one in three at most. Empty where there is none.
[[nodiscard]] std::string suggestion_for(std::string_view word, const std::vector<std::string> &names);

} // namespace onced::tools
