#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace onced::rehearsal {

// toml++ recurses over the parts of a dotted key as it parses and destroys, without a bound: 400 kB of "a.a.a…" end the
// process. So every text is looked at before toml++ sees it. Returns the line of the first key with more parts, or of
// the first value that nests deeper, than `limits::nesting_max`; nothing: there is none, and toml++ may parse the text.
[[nodiscard]] std::optional<std::uint32_t> line_too_deep(std::string_view toml);

} // namespace onced::rehearsal
