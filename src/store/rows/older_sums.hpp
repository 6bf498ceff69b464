#pragma once

#include <vector>

#include "engine/engine.hpp"

// The sums as formats 2 and 3 kept them in `meta`. The engine keeps them now; an opening takes these over and erases
// their rows.
namespace onced::store {

// Whether a row of this name is one of them.
[[nodiscard]] bool is_older_sum(BytesView name);
// What it adds to the sums. Nothing where it is damaged.
[[nodiscard]] std::optional<engine::Counters> decode_older_sum(BytesView name, BytesView value);

} // namespace onced::store
