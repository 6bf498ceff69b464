#include "admin/request.hpp"

#include <algorithm>
#include <vector>

#include "base/messagepack.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "onced/limits.hpp"

namespace onced::admin {
namespace {

constexpr std::size_t request_tokens_max = 16;

Error no_request() {
  return request_error("request", "it is no map of names and strings with a query");
}

} // namespace

const std::string *Request::text(std::string_view name) const {
  const auto found = texts.find(name);
  return found == texts.end() ? nullptr : &found->second;
}

std::string Request::text_or_empty(std::string_view name) const {
  const std::string *found = text(name);
  return found != nullptr ? *found : std::string();
}

Error request_error(const std::string &concerns, const std::string &cause) {
  return {.code = ErrorCode::usage, .concerns = concerns, .cause = cause, .remedy = "see docs/protocol.md, Queries"};
}

Result<Request> read_request(BytesView bytes) {
  std::vector<messagepack::Token> tokens;
  if (!messagepack::tokenize(bytes, tokens, request_tokens_max)) return tl::unexpected(no_request());
  messagepack::TokenReader reader(tokens);
  Request request;
  for (std::uint64_t left = reader.map(); left > 0 && reader.ok(); --left) {
    const std::string name(reader.string());
    const messagepack::Token *value = reader.peek();
    if (name == "rows") {
      request.rows = reader.positive();
    } else if (name == "result") {
      request.result = reader.binary();
    } else if (name == "held") {
      request.held_only = reader.boolean();
    } else if (name == "after" && value != nullptr && value->kind == messagepack::Kind::positive) {
      request.after_number = reader.positive();
    } else {
      request.texts[name] = std::string(reader.string());
    }
  }
  const std::string *query = request.text("query");
  if (!reader.at_end() || query == nullptr) return tl::unexpected(no_request());
  request.query = *query;
  return request;
}

Result<Key> requested_key(const Request &request) {
  const std::string *effect_key = request.text("effect_key");
  const std::string *operation_id = request.text("operation_id");
  const std::string *type = request.text("type");
  if (effect_key != nullptr && !effect_key->empty() && effect_key->size() <= limits::effect_key_bytes_max) {
    return key_of_effect(*effect_key);
  }
  if (operation_id == nullptr || operation_id->empty() || operation_id->size() > limits::operation_id_bytes_max) {
    return tl::unexpected(request_error(request.query, "it needs an operation id or an effect key of 1 to 255 bytes"));
  }
  const std::string_view asked_type = type != nullptr ? std::string_view(*type) : std::string_view("sum");
  if (asked_type.empty() || asked_type.size() > limits::type_bytes_max) {
    return tl::unexpected(request_error(request.query, "a type has 1 to 64 bytes"));
  }
  return key_of_operation(asked_type, *operation_id);
}

Result<DeadLetterId> requested_letter(const Request &request, std::string_view name) {
  const std::string *hex = request.text(name);
  const auto bytes = hex != nullptr ? from_hex(*hex) : std::nullopt;
  const auto id = bytes ? DeadLetterId::from(*bytes) : std::nullopt;
  if (id) return *id;
  return tl::unexpected(request_error(std::string(name), "an id of a dead letter has 32 hexadecimal characters"));
}

Result<DeadLetterFilter> requested_filter(const Request &request) {
  DeadLetterFilter filter;
  filter.type = request.text_or_empty("type");
  const std::string *reason = request.text("reason");
  if (reason == nullptr) return filter;
  for (const OutcomeTraits &traits : outcome_table) {
    if (traits.name == *reason && traits.final && !traits.success) filter.reason = traits.outcome;
  }
  if (!filter.reason) return tl::unexpected(request_error("reason", "it is conflict, invalid, failed or expired"));
  return filter;
}

Result<std::optional<Bytes>> requested_effect(const Request &request) {
  const std::string effect = request.text_or_empty("effect");
  const bool applied = effect == "applied";
  if ((!applied && effect != "absent") || applied != request.result.has_value()) {
    return tl::unexpected(request_error("effect", "it is applied, with a result, or absent, without one"));
  }
  if (!applied) return std::optional<Bytes>();
  JobParser parser;
  HandlerResult result = in_canonical_form(Done{*request.result}, parser);
  if (const auto *failed = std::get_if<Failed>(&result)) {
    return tl::unexpected(request_error("result", failed->detail));
  }
  return std::optional<Bytes>(std::move(std::get<Done>(result).result));
}

std::uint64_t requested_rows(const Request &request) {
  return std::min<std::uint64_t>(request.rows.value_or(limits::rows_per_answer_max), limits::rows_per_answer_max);
}

Operator requested_operator(const Request &request) {
  return {.by = request.text_or_empty("by"), .why = request.text_or_empty("why")};
}

} // namespace onced::admin
