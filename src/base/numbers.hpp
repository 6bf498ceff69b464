#pragma once

#include <cstdint>
#include <string_view>

#include "onced/error.hpp"

namespace onced {

// Numbers that people write, on a command line or in a file. The whole text is the number: no sign, no space, no other
// base, and nothing that would wrap round or be rounded into the range.

// A whole number, in decimal digits only. Errors: `usage`, naming the text and the range.
[[nodiscard]] Result<std::uint64_t> parse_whole(std::string_view text, std::uint64_t least, std::uint64_t most);

// A decimal such as "0.25" or "1e6"; no infinity and no NaN. Errors: `usage`, as above.
[[nodiscard]] Result<double> parse_decimal(std::string_view text, double least, double most);

} // namespace onced
