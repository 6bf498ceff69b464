#pragma once

#include <string>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"

namespace onced::wire {

// Writes bytes as one whole message to a worker's jobs socket, as a producer that wants no reply does, and waits until
// the socket has taken and flushed them or `deadline` has passed. Errors: `endpoint` (malformed), `timed_out`.
[[nodiscard]] Result<void> send_raw_message(const std::string &jobs_endpoint, BytesView message,
                                            MonotonicTime deadline);

} // namespace onced::wire
