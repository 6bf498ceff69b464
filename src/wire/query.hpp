#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/handler.hpp"
#include "onced/store.hpp"

// Queries: a MessagePack map {"query": NAME, …} in, a MessagePack map out (docs/protocol.md, "Queries"). Some read and
// some change; the same code answers on a running worker and on a database that no worker holds.
namespace onced::wire {

// The name of the query in a request; empty where it is none.
[[nodiscard]] std::string query_name(BytesView request);

// Who may ask, and what it does.
enum class QueryKind : std::uint8_t {
  reads,           // asked by anyone
  reads_privately, // by who may enter the data directory: through `control.sock`, or on the database itself
  changes,         // likewise, and it changes the store
};
[[nodiscard]] QueryKind kind_of_query(std::string_view name);

// Whose question it is.
enum class Asker : std::uint8_t {
  network,   // whoever can connect: is shown no sender's id
  directory, // who may enter the data directory
};

// Whether answering it reads rows by the thousand: who asks for one row should not wait for it.
[[nodiscard]] bool is_scan(std::string_view name);

// What a request is answered that came while too many were waiting, or while the asker had not read the answers before.
[[nodiscard]] Bytes answer_too_many();

// What a request that may not come by the network is answered there.
[[nodiscard]] Bytes answer_refused(std::string_view name);

// Answers one request that changes nothing; whatever the bytes are, the answer is a map, with "error" in it where there
// is no other, and with "durable" where what was read may not be on stable storage. As fast as the store: `count`
// scans. Any thread.
[[nodiscard]] Bytes answer_query(const Store &store, BytesView request, Asker asker);

// Carries out and answers one request that changes the store. Nothing is answered that is not on stable storage.
// `failure` is set where the store must be given up: what was being changed is unknown, and so the answer says. One
// thread at a time for each `failure`.
[[nodiscard]] Bytes answer_change(Store &store, const Handlers &handlers, BytesView request,
                                  std::optional<Error> &failure);

// The answer that says what is wrong.
[[nodiscard]] Bytes answer_error(const Error &error);

// Asks the worker whose replies socket is at `endpoint`, and waits until `deadline`. The answer is a MessagePack map.
// Errors: `endpoint` (malformed), `timed_out`, `unsupported_protocol`.
[[nodiscard]] Result<Bytes> ask(const std::string &endpoint, BytesView request, MonotonicTime deadline);

// The same through `control.sock` in the data directory of a running worker. Errors: also `not_found`.
[[nodiscard]] Result<Bytes> ask_directory(const std::filesystem::path &directory, BytesView request,
                                          MonotonicTime deadline);

} // namespace onced::wire
