#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "engine/engine.hpp"

// The sums as formats 2 and 3 kept them in `meta`. The engine keeps them now; an opening takes these over and erases
// their rows.
namespace onced::store {

// What their names begin with.
inline constexpr std::array<std::string_view, 3> older_sum_prefixes{"counters/", "letter-bytes/", "changes"};
// Whether a row of this name is one of them.
[[nodiscard]] bool is_older_sum(BytesView name);
// What it adds to the sums. Nothing where it is damaged.
[[nodiscard]] std::optional<engine::Counters> decode_older_sum(BytesView name, BytesView value);

} // namespace onced::store
