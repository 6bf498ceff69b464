#include "store/rows/queue_row.hpp"

#include "base/utf8.hpp"
#include "onced/limits.hpp"

namespace onced::store {

std::string_view name_of(QueueState state) {
  switch (state) {
  case QueueState::waiting:
    return "waiting";
  case QueueState::leased:
    return "leased";
  case QueueState::calling:
    return "calling";
  case QueueState::held:
    return "held";
  }
  return "unknown";
}

void keep_error(std::vector<std::string> &errors, std::string_view error) {
  if (error.empty()) return;
  if (errors.size() >= limits::queue_errors_kept_max) errors.erase(errors.begin());
  errors.push_back(utf8::repaired(error, limits::queue_error_bytes_max));
}

std::string whereabouts_of_held(std::string_view owner) {
  const std::string_view who = owner.empty() ? std::string_view("a person") : owner;
  return utf8::repaired("held: nobody knows whether it had its effect, and " + std::string(who) + " decides",
                        limits::detail_bytes_max);
}

std::string whereabouts_of(const QueueRow &row) {
  switch (row.state) {
  case QueueState::waiting:
    return "it waits for its handler";
  case QueueState::leased:
  case QueueState::calling:
    return "its handler has it";
  case QueueState::held:
    break;
  }
  return whereabouts_of_held(row.owner);
}

QueueRow queue_row_of(const Delivery &delivery, WallTime now) {
  QueueRow row;
  row.bytes = Bytes(delivery.bytes);
  row.operation_id = delivery.job->operation_id;
  row.type = delivery.job->type;
  row.effect_key = delivery.job->effect_key;
  row.sender = delivery.sender;
  row.sequence = delivery.sequence;
  row.issued_at = delivery.issued_at;
  row.accepted_at = now;
  row.changed_at = now;
  return row;
}

QueueRow queue_row_of(const DeadLetter &letter, WallTime now) {
  QueueRow row;
  row.effect_unknown = letter.effect_unknown;
  row.bytes = letter.bytes;
  row.operation_id = letter.operation_id;
  row.type = letter.type;
  row.effect_key = letter.effect_key;
  row.sender = letter.sender;
  row.sequence = letter.sequence;
  row.issued_at = letter.issued_at;
  row.accepted_at = letter.first_at;
  row.changed_at = now;
  row.receives_total = letter.receives;
  row.redrives = letter.redrives + 1;
  row.errors = letter.errors;
  return row;
}

DeadLetter letter_of(const DeadLetterId &id, const QueueRow &row, WallTime now) {
  DeadLetter letter;
  letter.id = id;
  letter.reason = Outcome::failed;
  if (!row.errors.empty()) letter.detail = utf8::repaired(row.errors.back(), limits::detail_bytes_max);
  letter.bytes = row.bytes;
  letter.operation_id = row.operation_id;
  letter.type = row.type;
  letter.effect_key = row.effect_key;
  letter.sender = row.sender;
  letter.sequence = row.sequence;
  letter.issued_at = row.issued_at;
  letter.deliveries = 1;
  letter.receives = row.receives_total;
  letter.redrives = row.redrives;
  letter.first_at = row.accepted_at;
  letter.last_at = now;
  letter.errors = row.errors;
  letter.effect_unknown = row.effect_unknown;
  return letter;
}

} // namespace onced::store
