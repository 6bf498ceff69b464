#pragma once

#include <nlohmann/json.hpp>

namespace onced::rehearsal {

// JSON whose objects keep the order in which they were written.
using Json = nlohmann::ordered_json;

} // namespace onced::rehearsal
