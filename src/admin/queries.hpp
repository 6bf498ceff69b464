#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "admin/answers.hpp"
#include "onced/bytes.hpp"
#include "onced/error.hpp"
#include "onced/handler.hpp"
#include "onced/store.hpp"

// Queries: a MessagePack map {"query": NAME, …} in, a MessagePack map out (docs/protocol.md, "Queries"). Some read and
// some change; the same code answers on a running worker and on a database that no worker holds.
namespace onced::admin {

// The right that a query needs.
enum class Right : std::uint8_t {
  read,    // anyone who can connect has it
  operate, // the right to the data directory: through `control.sock`, or on the database itself
};

// One row of the table of queries.
struct Query {
  std::string_view name;
  Right right = Right::read;
  std::variant<ReadAnswer *, ChangeAnswer *> answer;
  bool scans = false; // it reads rows by the thousand: who asks for one row should not wait for it

  [[nodiscard]] bool changes() const { return std::holds_alternative<ChangeAnswer *>(answer); }
};

// Null: there is none of this name.
[[nodiscard]] const Query *find_query(std::string_view name);

// The name of the query in a request; empty where it is none.
[[nodiscard]] std::string query_name(BytesView request);

// Answers one request that changes nothing; whatever the bytes are, the answer is a map, with "error" in it where there
// is no other, and with "durable" where what was read may not be on stable storage. As fast as the store: `count`
// scans. Any thread.
[[nodiscard]] Bytes answer_query(const Store &store, BytesView request, Asker asker);

// Carries out and answers one request that changes the store. Nothing is answered that is not on stable storage.
// `failure` is set where the store has failed, now or before, so that it must be given up. One thread at a time for
// each `failure`.
[[nodiscard]] Bytes answer_change(Store &store, const Handlers &handlers, BytesView request,
                                  std::optional<Error> &failure);

// The answer that says what is wrong.
[[nodiscard]] Bytes answer_error(const Error &error);

// What a request is answered that came while too many were waiting, or while the asker had not read the answers before.
[[nodiscard]] Bytes answer_too_many();

// What a request that may not come by the network is answered there.
[[nodiscard]] Bytes answer_refused(std::string_view name);

} // namespace onced::admin
