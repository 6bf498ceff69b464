// What is asked of the store as a whole, and of one row of a key.
#include "admin/answers.hpp"

#include <vector>

namespace onced::admin {

void write_digest(MapWriter &map, std::string_view name, const std::optional<Digest> &digest) {
  map.text(name, digest ? to_hex(digest->view()) : std::string());
}

void write_ids(MapWriter &map, std::string_view operation_id, std::string_view type, std::string_view effect_key) {
  map.text("operation_id", operation_id);
  map.text("type", type);
  map.text("effect_key", effect_key);
}

void write_errors(MapWriter &map, const std::vector<std::string> &errors) {
  messagepack::Writer &array = map.entry("errors").array(errors.size());
  for (const std::string &error : errors)
    array.string(error);
}

void write_sender(MapWriter &map, const SenderId &sender, Sequence sequence, Asker asker) {
  map.text("sender", handle_of(sender));
  if (asker == Asker::directory) map.text("sender_id", sender == SenderId{} ? std::string() : to_hex(sender.view()));
  map.number("sequence", number_of(sequence));
}

Result<void> answer_get(const Store &store, const Request &request, Asker /*asker*/, MapWriter &answer) {
  const auto key = requested_key(request);
  if (!key) return tl::unexpected(key.error());
  const auto found = store.get(*key);
  if (!found) return tl::unexpected(found.error());
  answer.boolean("found", found->has_value());
  if (!*found) return {};
  const OperationRow &row = **found;
  answer.string("operation_id", row.operation_id);
  answer.string("type", row.type);
  answer.text("effect_key", row.effect_key);
  answer.string("phase", name_of(row.phase));
  row.result.empty() ? answer.entry("result").nil() : answer.entry("result").raw(row.result);
  write_digest(answer, "digest", row.digest);
  answer.time("issued_at_us", row.issued_at);
  answer.time("committed_at_us", row.committed_at);
  answer.string("worker_build", row.worker_build);
  answer.string("durability", name_of(row.durability));
  return {};
}

Result<void> answer_count(const Store &store, const Request & /*request*/, Asker /*asker*/, MapWriter &answer) {
  const auto counts = store.count();
  if (!counts) return tl::unexpected(counts.error());
  answer.number("results", counts->results);
  answer.number("dead_letters", counts->dead_letters);
  answer.number("pending", counts->pending);
  answer.number("relayed", counts->relayed);
  return {};
}

// On a running worker it is answered by the worker itself.
Result<void> answer_stats(const Store & /*store*/, const Request & /*request*/, Asker /*asker*/,
                          MapWriter & /*answer*/) {
  return tl::unexpected(Error{.code = ErrorCode::not_found,
                              .concerns = "stats",
                              .cause = "no worker runs, and it is a running worker that counts",
                              .remedy = "start one; onced count counts the rows there are"});
}

Result<void> answer_verify(const Store &store, const Request & /*request*/, Asker /*asker*/, MapWriter &answer) {
  const auto found = store.verify();
  if (!found) return tl::unexpected(found.error());
  answer.number("tables", found->tables);
  answer.number("table_bytes", found->table_bytes);
  answer.number("operations", found->operations);
  answer.number("dead_letters", found->dead_letters);
  answer.number("queued", found->queued);
  answer.number("relayed", found->relayed);
  answer.number("audit_rows", found->audit_rows);
  answer.number("counters", found->counters);
  answer.number("problems", found->problems);
  answer.maps("first_problems", found->first_problems, [](MapWriter &map, const Problem &problem) {
    map.string("where", problem.where);
    problem.key.empty() ? map.entry("key").nil() : map.entry("key").binary(problem.key);
    map.string("what", problem.what);
  });
  return {};
}

// A change is of a dead letter, which its id names, or of a queued job, which its key's parts name.
Result<void> answer_audit(const Store &store, const Request &request, Asker /*asker*/, MapWriter &answer) {
  const auto rows = store.audit(requested_rows(request), request.after_number.value_or(0));
  if (!rows) return tl::unexpected(rows.error());
  answer.maps("rows", *rows, [](MapWriter &map, const AuditRow &row) {
    map.number("number", row.number);
    map.time("changed_at_us", row.at);
    map.string("action", row.action);
    map.text("id", row.dead_letter == DeadLetterId{} ? std::string() : to_hex(row.dead_letter.view()));
    const KeyParts parts = parts_of_key(row.key).value_or(KeyParts{});
    write_ids(map, parts.operation_id, parts.type, parts.effect_key);
    map.text("outcome", row.outcome);
    map.string("by", row.by);
    map.string("why", row.why);
  });
  return {};
}

} // namespace onced::admin
