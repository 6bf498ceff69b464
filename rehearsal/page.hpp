#pragma once

#include "onced/bytes.hpp"

#include "rehearsal/json.hpp"

namespace onced::rehearsal {

// The page of a record (docs/rehearsal-record.md) as one HTML file that needs nothing else. The same record gives the
// same bytes. Throws nlohmann's type_error if a text of the record is no UTF-8.
[[nodiscard]] Bytes render_html(const Json &record);

} // namespace onced::rehearsal
