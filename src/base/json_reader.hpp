#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "onced/bytes.hpp"

namespace onced {

// Writes the MessagePack form of one JSON value into `out`, reusing its memory, or says why there is none. Integers are
// exact: a literal beyond 64 bits is refused, never rounded. Nesting beyond limits::nesting_max is refused when it
// begins. Duplicate names pass: the job's parser refuses them, as it does from any producer.
[[nodiscard]] tl::expected<void, std::string> messagepack_of_json(std::string_view json, Bytes &out);

} // namespace onced
