#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "onced/bytes.hpp"

namespace onced {

// JSON whose objects keep the order in which they were written.
using Json = nlohmann::ordered_json;

// What becomes of a MessagePack binary, which JSON does not have.
enum class Binaries { kept, refused };

// The value of MessagePack bytes; integers exact. Nothing where the bytes are not exactly one value, nest too deeply
// (limits::nesting_max), or hold what JSON cannot say: a name twice or no string, a string that is no UTF-8, NaN or an
// infinity, an ext type, a binary (unless kept). Memory stays in proportion to the bytes.
[[nodiscard]] std::optional<Json> json_of_messagepack(BytesView bytes, Binaries binaries);

// One line without its end. What is no UTF-8 in a string is replaced by U+FFFD.
[[nodiscard]] std::string dump(const Json &value);

} // namespace onced
