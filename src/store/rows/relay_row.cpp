#include "store/rows/relay_row.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "job/relayed_job.hpp"
#include "onced/limits.hpp"

namespace onced::store {
namespace {

constexpr std::size_t index_bytes = 2;
// What the id of such a dead letter is hashed with, so that it meets none of a key or of bytes.
constexpr std::string_view relay_letter_tag = "onced relay dead letter 1\n";

} // namespace

Bytes relay_prefix(std::string_view to) {
  Bytes prefix(1, static_cast<char>(to.size()));
  return prefix += to;
}

Bytes relay_key(std::string_view to, BytesView parent, std::size_t index) {
  Bytes key = relay_prefix(to);
  key += parent;
  key += static_cast<char>(static_cast<unsigned char>(index >> 8U));
  key += static_cast<char>(static_cast<unsigned char>(index));
  return key;
}

std::optional<RelayKey> relay_key_of(BytesView bytes) {
  const auto number = [](char byte) { return static_cast<std::size_t>(static_cast<unsigned char>(byte)); };
  const std::size_t name_bytes = bytes.empty() ? 0 : number(bytes[0]);
  if (name_bytes == 0 || name_bytes > limits::relay_name_bytes_max) return std::nullopt;
  if (bytes.size() <= 1 + name_bytes + index_bytes) return std::nullopt;
  const std::size_t end = bytes.size() - index_bytes;
  return RelayKey{.to = bytes.substr(1, name_bytes),
                  .parent = bytes.substr(1 + name_bytes, end - 1 - name_bytes),
                  .index = number(bytes[end]) << 8U | number(bytes[end + 1])};
}

std::vector<RelayEntry> relay_entries(const std::vector<RelayMessage> &messages, BytesView parent_key,
                                      std::string_view traceparent, WallTime now, Digester &digester,
                                      JobParser &parser) {
  std::vector<RelayEntry> entries;
  for (std::size_t at = 0; at < messages.size(); ++at) {
    RelayEntry &entry = entries.emplace_back();
    entry.key = relay_key(messages[at].to, parent_key, at);
    entry.row.job = relayed_job(messages[at].job, parent_key, at, traceparent, digester, parser);
    entry.row.created_at = now;
  }
  return entries;
}

RowAmount amount_of(std::span<const RelayEntry> entries) {
  RowAmount amount;
  for (const RelayEntry &entry : entries) {
    ++amount.rows;
    amount.bytes += entry.row.job.size();
  }
  return amount;
}

DeadLetterId relay_letter_id(BytesView row_key, Digester &digester) {
  Bytes hashed(relay_letter_tag);
  hashed += row_key;
  const Digest hash = digester.plain(hashed);
  DeadLetterId id;
  std::copy_n(hash.bytes.begin(), DeadLetterId::size, id.bytes.begin());
  return id;
}

DeadLetter letter_of(BytesView row_key, const RelayRow &row, Outcome outcome, std::string_view detail, WallTime now,
                     Digester &digester) {
  DeadLetter letter;
  letter.id = relay_letter_id(row_key, digester);
  letter.reason = outcome;
  const std::string to(relay_key_of(row_key).value_or(RelayKey{}).to);
  letter.detail = utf8::repaired("sent on to " + to + ", which said: " + std::string(detail), limits::detail_bytes_max);
  letter.bytes = row.job;
  letter.issued_at = row.created_at;
  letter.deliveries = 1;
  letter.redrives = row.redrives;
  letter.first_at = row.created_at;
  letter.last_at = now;
  letter.relay_key = Bytes(row_key);
  return letter;
}

RelayEntry relay_entry_of(const DeadLetter &letter) {
  RelayEntry entry;
  entry.key = letter.relay_key;
  entry.row = {.job = letter.bytes, .created_at = letter.first_at, .redrives = letter.redrives + 1};
  return entry;
}

} // namespace onced::store
