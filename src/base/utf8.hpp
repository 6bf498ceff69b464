#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace onced::utf8 {

// Whether `text` is well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF, nothing cut short.
[[nodiscard]] bool valid(std::string_view text);

// `text` with U+FFFD in place of every byte that belongs to no well-formed sequence, cut to at most `bytes_max` bytes
// between two code points.
[[nodiscard]] std::string repaired(std::string_view text, std::size_t bytes_max);

} // namespace onced::utf8
