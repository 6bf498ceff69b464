#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/store.hpp"

// Read-only queries: a MessagePack map {"query": NAME, …} in, a MessagePack map out (docs/protocol.md, "Queries").
// The same code answers on a running worker and on a database that no worker holds.
namespace onced::wire {

// The name of the query in a request; empty where it is none.
[[nodiscard]] std::string query_name(BytesView request);

// Answers one request; whatever the bytes are, the answer is a map, with "error" in it where there is no other.
// As fast as the store: `count` scans. Any thread.
[[nodiscard]] Bytes answer_query(const Store &store, BytesView request);

// The answer that says what is wrong.
[[nodiscard]] Bytes answer_error(const Error &error);

// Asks the worker whose replies socket is at `endpoint`, and waits until `deadline`. The answer is a MessagePack map.
// Errors: `endpoint` (malformed), `timed_out`, `unsupported_protocol`.
[[nodiscard]] Result<Bytes> ask(const std::string &endpoint, BytesView request, MonotonicTime deadline);

// The same through `control.sock` in the data directory of a running worker. Errors: also `not_found`.
[[nodiscard]] Result<Bytes> ask_directory(const std::filesystem::path &directory, BytesView request,
                                          MonotonicTime deadline);

} // namespace onced::wire
