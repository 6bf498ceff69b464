#pragma once

#include <filesystem>
#include <string>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"

// The asking side of queries (docs/protocol.md, "Queries"). src/admin/ answers them.
namespace onced::wire {

// Asks the worker whose replies socket is at `endpoint`, and waits until `deadline`. Request and answer are MessagePack
// maps. Errors: `endpoint` (malformed), `timed_out`, `unsupported_protocol`, `usage` (the request is too long).
[[nodiscard]] Result<Bytes> ask(const std::string &endpoint, BytesView request, MonotonicTime deadline);

// The same through `control.sock` in the data directory of a running worker. Errors: also `not_found`.
[[nodiscard]] Result<Bytes> ask_directory(const std::filesystem::path &directory, BytesView request,
                                          MonotonicTime deadline);

} // namespace onced::wire
