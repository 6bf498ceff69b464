#pragma once

#include <string>
#include <string_view>

namespace onced {

// A sequence of bytes. Not text: it may hold NUL and need not be UTF-8.
// The standard string serves because every library below speaks `char *`.
using Bytes = std::string;

// Borrowed bytes: valid only as long as their owner says.
using BytesView = std::string_view;

} // namespace onced
