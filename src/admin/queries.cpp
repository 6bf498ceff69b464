#include "admin/queries.hpp"

#include <algorithm>
#include <array>

#include "base/utf8.hpp"
#include "onced/limits.hpp"

namespace onced::admin {
namespace {

constexpr std::array<Query, 12> query_table{{
    {"get", Right::read, answer_get},
    {"count", Right::read, answer_count, true},
    {"stats", Right::read, answer_stats},
    {"dead-letters list", Right::read, answer_letter_list, true},
    {"dead-letters show", Right::read, answer_letter},
    {"pending list", Right::read, answer_queued_list, true},
    {"pending show", Right::read, answer_queued},
    {"audit", Right::operate, answer_audit, true},
    {"verify", Right::operate, answer_verify, true},
    {"dead-letters redrive", Right::operate, answer_redrive},
    {"dead-letters purge", Right::operate, answer_purge},
    {"pending resolve", Right::operate, answer_resolve},
}};

Result<void> read(const Store &store, BytesView bytes, Asker asker, MapWriter &answer) {
  const auto request = read_request(bytes);
  if (!request) return tl::unexpected(request.error());
  const Query *query = find_query(request->query);
  const auto *answer_of = query != nullptr ? std::get_if<ReadAnswer *>(&query->answer) : nullptr;
  if (answer_of == nullptr) return tl::unexpected(request_error(request->query, "there is no such query"));
  return (*answer_of)(store, *request, asker, answer);
}

Result<void> change(Store &store, const Handlers &handlers, BytesView bytes, MapWriter &answer) {
  const auto request = read_request(bytes);
  if (!request) return tl::unexpected(request.error());
  const Query *query = find_query(request->query);
  const auto *answer_of = query != nullptr ? std::get_if<ChangeAnswer *>(&query->answer) : nullptr;
  if (answer_of == nullptr) return tl::unexpected(request_error(request->query, "there is no such change"));
  return (*answer_of)(store, handlers, *request, answer);
}

} // namespace

const Query *find_query(std::string_view name) {
  const auto *found =
      std::find_if(query_table.begin(), query_table.end(), [&](const Query &query) { return query.name == name; });
  return found != query_table.end() ? found : nullptr;
}

std::string query_name(BytesView request) {
  const auto read = read_request(request);
  return read ? read->query : std::string();
}

Bytes answer_query(const Store &store, BytesView request, Asker asker) {
  MapWriter answer;
  if (const auto written = read(store, request, asker, answer); !written) return answer_error(written.error());
  if (!store.reads_durable()) answer.string("durable", "unknown");
  return answer.bytes();
}

Bytes answer_change(Store &store, const Handlers &handlers, BytesView request, std::optional<Error> &failure) {
  MapWriter answer;
  const auto changed = change(store, handlers, request, answer);
  if (changed) return answer.bytes();
  // A store that has failed refuses every commit, by whatever code the change was refused.
  if (const auto empty = store.commit({}, handlers); !empty) failure = empty.error();
  return answer_error(changed.error());
}

Bytes answer_error(const Error &error) {
  MapWriter inner;
  inner.string("code", name_of(error.code));
  inner.string("concerns", utf8::repaired(error.concerns, limits::detail_bytes_max)); // a stranger may have sent it
  inner.string("cause", error.cause);
  inner.string("remedy", error.remedy);
  MapWriter answer;
  answer.map("error", inner);
  return answer.bytes();
}

Bytes answer_too_many() {
  return answer_error({.code = ErrorCode::timed_out,
                       .concerns = "query",
                       .cause = "too many queries are waiting, or too many bytes of answers were not read",
                       .remedy = "read the answers to the queries before, then ask again"});
}

Bytes answer_refused(std::string_view name) {
  return answer_error({.code = ErrorCode::usage,
                       .concerns = std::string(name),
                       .cause = "it is not answered over the network",
                       .remedy = "ask on the worker's machine, with --data and its data directory"});
}

} // namespace onced::admin
