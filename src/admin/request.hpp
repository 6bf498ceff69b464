#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "onced/bytes.hpp"
#include "onced/digest.hpp"
#include "onced/error.hpp"
#include "onced/store.hpp"

namespace onced::admin {

// A request: names and values that are strings, and a few of another kind.
struct Request {
  std::string query; // its name
  std::map<std::string, std::string, std::less<>> texts;
  std::optional<std::uint64_t> rows;
  std::optional<std::uint64_t> after_number; // of the audit
  std::optional<Bytes> result;               // of a resolution
  bool held_only = false;                    // of queued jobs

  [[nodiscard]] const std::string *text(std::string_view name) const;
  // Empty where there is none.
  [[nodiscard]] std::string text_or_empty(std::string_view name) const;
};

// Error `usage`: the bytes are no request.
[[nodiscard]] Result<Request> read_request(BytesView bytes);

// Error `usage`, which refers to the document of the queries.
[[nodiscard]] Error request_error(const std::string &concerns, const std::string &cause);

// What a request says, each with its errors `usage`.
[[nodiscard]] Result<Key> requested_key(const Request &request);
[[nodiscard]] Result<DeadLetterId> requested_letter(const Request &request, std::string_view name);
[[nodiscard]] Result<DeadLetterFilter> requested_filter(const Request &request);
// What the owner of a held job says of its effect: the result in canonical form, or nothing where it is absent.
[[nodiscard]] Result<std::optional<Bytes>> requested_effect(const Request &request);
[[nodiscard]] std::uint64_t requested_rows(const Request &request);
[[nodiscard]] Operator requested_operator(const Request &request);

} // namespace onced::admin
