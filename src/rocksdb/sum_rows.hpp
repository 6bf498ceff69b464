#pragma once

#include <optional>
#include <string_view>

#include "engine/engine.hpp"

// The rows in `meta` that hold the engine's sums: one for each session that ever worked at the same time as others. A
// single row would make transactions wait for one another. What all rows say, added up, is the sum.
namespace onced::rocks {

inline constexpr std::string_view sums_prefix = "sums/";
[[nodiscard]] Bytes sums_name(unsigned session);
// Nothing where the name is none of these.
[[nodiscard]] std::optional<unsigned> sums_number(BytesView name);

// Replaces what `out` holds, keeping its memory.
void encode_sums(const engine::Counters &sums, Bytes &out);
[[nodiscard]] std::optional<engine::Counters> decode_sums(BytesView value);

} // namespace onced::rocks
