// What is asked and changed of dead letters.
#include "admin/answers.hpp"

#include "wire/messages.hpp"

namespace onced::admin {
namespace {

// A whole message may hold the id of its sender, which is not for the network.
bool may_show_bytes(const DeadLetter &letter, Asker asker) {
  const bool is_message = letter.detail == wire::message_malformed || letter.detail == wire::message_multipart;
  return asker == Asker::directory || !letter.operation_id.empty() || !is_message;
}

void write_letter(MapWriter &map, const DeadLetter &letter) {
  map.string("id", to_hex(letter.id.view()));
  map.string("reason", traits_of(letter.reason).name);
  map.text("detail", letter.detail);
  write_ids(map, letter.operation_id, letter.type, letter.effect_key);
  map.number("deliveries", letter.deliveries);
  map.time("first_at_us", letter.first_at);
  map.time("last_at_us", letter.last_at);
}

} // namespace

Result<void> answer_letter_list(const Store &store, const Request &request, Asker /*asker*/, MapWriter &answer) {
  std::optional<DeadLetterId> after;
  if (request.text("after") != nullptr || request.after_number) {
    const auto id = requested_letter(request, "after");
    if (!id) return tl::unexpected(id.error());
    after = *id;
  }
  const auto filter = requested_filter(request);
  if (!filter) return tl::unexpected(filter.error());
  const auto page = store.find_dead_letters(requested_rows(request), after, *filter);
  if (!page) return tl::unexpected(page.error());
  answer.maps("rows", page->letters, [](MapWriter &map, const DeadLetter &letter) {
    write_letter(map, letter);
    if (letter.effect_unknown) map.boolean("effect_unknown", true);
  });
  // A filtered page may be empty before the end; of any other the last row is where it goes on.
  if (!filter->reason && filter->type.empty()) return {};
  answer.text("next", page->next ? to_hex(page->next->view()) : std::string());
  return {};
}

Result<void> answer_letter(const Store &store, const Request &request, Asker asker, MapWriter &answer) {
  const auto id = requested_letter(request, "id");
  if (!id) return tl::unexpected(id.error());
  const auto found = store.dead_letter(*id);
  if (!found) return tl::unexpected(found.error());
  answer.boolean("found", found->has_value());
  if (!*found) return {};
  const DeadLetter &letter = **found;
  write_letter(answer, letter);
  may_show_bytes(letter, asker) ? answer.entry("bytes").binary(letter.bytes) : answer.entry("bytes").nil();
  write_sender(answer, letter.sender, letter.sequence, asker);
  answer.time("issued_at_us", letter.issued_at);
  answer.number("receives", letter.receives);
  answer.number("redrives", letter.redrives);
  write_digest(answer, "stored_digest", letter.stored_digest);
  write_digest(answer, "offered_digest", letter.offered_digest);
  write_errors(answer, letter.errors);
  answer.boolean("effect_unknown", letter.effect_unknown);
  answer.boolean("relayed", !letter.relay_key.empty());
  return {};
}

Result<void> answer_redrive(Store &store, const Handlers &handlers, const Request &request, MapWriter &answer) {
  const auto id = requested_letter(request, "id");
  if (!id) return tl::unexpected(id.error());
  const auto redriven = store.redrive(*id, handlers, requested_operator(request));
  if (!redriven) return tl::unexpected(redriven.error());
  answer.string("id", to_hex(id->view()));
  answer.string("outcome", traits_of(redriven->settlement.outcome).name);
  answer.text("detail", redriven->settlement.detail);
  answer.boolean("removed", redriven->removed);
  answer.text("now_id", redriven->removed ? std::string() : to_hex(redriven->id.view()));
  return {};
}

Result<void> answer_purge(Store &store, const Handlers & /*handlers*/, const Request &request, MapWriter &answer) {
  const auto id = requested_letter(request, "id");
  if (!id) return tl::unexpected(id.error());
  if (auto purged = store.purge(*id, requested_operator(request)); !purged) return purged;
  answer.string("id", to_hex(id->view()));
  answer.boolean("removed", true);
  return {};
}

} // namespace onced::admin
