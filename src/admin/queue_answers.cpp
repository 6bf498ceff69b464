// What is asked and changed of queued jobs.
#include "admin/answers.hpp"

#include "store/job_queue.hpp"

namespace onced::admin {
namespace {

void write_queued(MapWriter &map, BytesView key, const store::QueueRow &row) {
  write_ids(map, row.operation_id, row.type, row.effect_key);
  map.string("idempotency_key", idempotency_key_of(key));
  map.string("state", name_of(row.state));
  map.text("owner", row.owner);
  map.boolean("effect_unknown", row.effect_unknown);
  map.number("receives", row.receives);
  map.number("receives_total", row.receives_total);
  map.number("redrives", row.redrives);
  map.time("accepted_at_us", row.accepted_at);
  map.time("changed_at_us", row.changed_at);
}

} // namespace

Result<void> answer_queued_list(const Store &store, const Request &request, Asker /*asker*/, MapWriter &answer) {
  const std::string *hex = request.text("after");
  const auto after = hex != nullptr ? from_hex(*hex) : std::optional<Bytes>(Bytes());
  if (!after || request.after_number) return tl::unexpected(request_error("after", "it is a key in hexadecimal"));
  const std::string type = request.text_or_empty("type");
  const auto page =
      store.queue().find_queued(*after, requested_rows(request), {.held_only = request.held_only, .type = type});
  if (!page) return tl::unexpected(page.error());
  answer.maps("rows", page->entries, [](MapWriter &map, const store::QueueEntry &entry) {
    write_queued(map, entry.key, entry.row);
    map.text("error", entry.row.errors.empty() ? std::string_view() : entry.row.errors.back());
  });
  answer.text("next", page->next ? to_hex(*page->next) : std::string());
  answer.number("damaged", page->damaged);
  return {};
}

Result<void> answer_queued(const Store &store, const Request &request, Asker asker, MapWriter &answer) {
  const auto key = requested_key(request);
  if (!key) return tl::unexpected(key.error());
  const auto found = store.queue().find(key->bytes);
  if (!found) return tl::unexpected(found.error());
  answer.boolean("found", found->has_value());
  if (!*found) return {};
  const store::QueueRow &row = **found;
  write_queued(answer, key->bytes, row);
  write_errors(answer, row.errors);
  answer.text("token", row.token == FencingToken{} ? std::string() : text_of(row.token));
  answer.binary("bytes", row.bytes);
  write_sender(answer, row.sender, row.sequence, asker);
  answer.time("issued_at_us", row.issued_at);
  return {};
}

Result<void> answer_resolve(Store &store, const Handlers & /*handlers*/, const Request &request, MapWriter &answer) {
  const auto key = requested_key(request);
  if (!key) return tl::unexpected(key.error());
  const auto result = requested_effect(request);
  if (!result) return tl::unexpected(result.error());
  if (auto resolved = store.resolve(*key, *result, requested_operator(request)); !resolved) return resolved;
  answer.string("outcome", traits_of(*result ? Outcome::stored : Outcome::accepted).name);
  answer.boolean("resolved", true);
  return {};
}

} // namespace onced::admin
