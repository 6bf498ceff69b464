#include "store/rows/records.hpp"

#include "onced/limits.hpp"
#include "onced/version.hpp"

namespace onced::store {
namespace {

using messagepack::TokenReader;
using messagepack::Writer;

// How many elements the array of a row has, its format included.
constexpr std::size_t operation_fields = 11;
constexpr std::size_t queue_fields = 19;
constexpr std::size_t relay_fields = 4;
constexpr std::size_t dead_letter_fields = 21;
constexpr std::size_t audit_fields = 8;
constexpr std::size_t crash_count_fields = 3;
constexpr std::size_t record_tokens_max = 32;
static_assert(record_tokens_max >= 1 + dead_letter_fields + limits::queue_errors_kept_max, "any record is read");

Writer begin(Bytes &out, std::size_t fields) {
  out.clear();
  Writer writer(out);
  writer.array(fields).positive(row_format);
  return writer;
}

void begin(TokenReader &reader, std::size_t fields) {
  reader.array(fields);
  reader.require(reader.positive() == row_format);
}

void write_time(Writer &writer, WallTime time) {
  writer.positive(static_cast<std::uint64_t>(std::max<std::int64_t>(time.time_since_epoch().count(), 0)));
}

WallTime read_time(TokenReader &reader) {
  const std::uint64_t microseconds = reader.positive();
  reader.require(microseconds <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  return WallTime{std::chrono::microseconds{static_cast<std::int64_t>(microseconds)}};
}

void write_text(Writer &writer, std::string_view text) {
  text.empty() ? writer.nil() : writer.string(text);
}

std::string_view read_text(TokenReader &reader) {
  return reader.string_or_nil().value_or(std::string_view{});
}

void write_digest(Writer &writer, const std::optional<Digest> &digest) {
  digest ? writer.binary(digest->view()) : writer.nil();
}

std::optional<Digest> read_digest(TokenReader &reader) {
  const auto bytes = reader.binary_or_nil();
  if (!bytes) return std::nullopt;
  const auto digest = Digest::from(*bytes);
  reader.require(digest.has_value());
  return digest;
}

void write_errors(Writer &writer, const std::vector<std::string> &errors) {
  writer.array(errors.size());
  for (const std::string &error : errors)
    writer.string(error);
}

std::vector<std::string> read_errors(TokenReader &reader) {
  const std::uint64_t size = reader.array();
  std::vector<std::string> errors;
  if (!reader.require(size <= limits::queue_errors_kept_max)) return errors;
  for (std::uint64_t at = 0; at < size; ++at)
    errors.emplace_back(reader.string());
  return errors;
}

SenderId read_sender(TokenReader &reader) {
  const auto sender = SenderId::from(reader.binary());
  reader.require(sender.has_value());
  return sender.value_or(SenderId{});
}

} // namespace

std::optional<OperationRecord> RecordDecoder::operation(BytesView value) {
  if (!messagepack::tokenize(value, tokens_, record_tokens_max)) return std::nullopt;
  TokenReader reader(tokens_);
  begin(reader, operation_fields);
  OperationRecord record;
  const std::uint64_t phase = reader.positive();
  reader.require(phase <= static_cast<std::uint64_t>(Phase::failed));
  record.phase = static_cast<Phase>(phase);
  const auto digest = read_digest(reader);
  reader.require(digest.has_value());
  record.digest = digest.value_or(Digest{});
  record.result = reader.binary();
  record.operation_id = reader.string();
  record.type = reader.string();
  record.effect_key = read_text(reader);
  record.issued_at = read_time(reader);
  record.committed_at = read_time(reader);
  record.worker_build = reader.string();
  const std::uint64_t durability = reader.positive();
  reader.require(durability <= static_cast<std::uint64_t>(Durability::page_cache));
  record.durability = static_cast<Durability>(durability);
  if (!reader.at_end()) return std::nullopt;
  return record;
}

std::optional<QueueRow> RecordDecoder::queued(BytesView value) {
  if (!messagepack::tokenize(value, tokens_, record_tokens_max)) return std::nullopt;
  TokenReader reader(tokens_);
  begin(reader, queue_fields);
  QueueRow row;
  const std::uint64_t state = reader.positive();
  reader.require(state <= static_cast<std::uint64_t>(QueueState::held));
  row.state = static_cast<QueueState>(state);
  row.effect_unknown = reader.boolean();
  row.bytes = reader.binary();
  row.operation_id = reader.string();
  row.type = reader.string();
  row.effect_key = read_text(reader);
  row.sender = read_sender(reader);
  row.sequence = Sequence{reader.positive()};
  row.issued_at = read_time(reader);
  row.accepted_at = read_time(reader);
  row.changed_at = read_time(reader);
  row.receives = reader.positive();
  row.receives_total = reader.positive();
  row.redrives = reader.positive();
  row.token.boot = reader.positive();
  row.token.count = reader.positive();
  row.owner = read_text(reader);
  row.errors = read_errors(reader);
  if (!reader.at_end()) return std::nullopt;
  return row;
}

std::optional<RelayRow> RecordDecoder::relayed(BytesView value) {
  if (!messagepack::tokenize(value, tokens_, record_tokens_max)) return std::nullopt;
  TokenReader reader(tokens_);
  begin(reader, relay_fields);
  RelayRow row;
  row.job = reader.binary();
  row.created_at = read_time(reader);
  row.redrives = reader.positive();
  if (!reader.at_end()) return std::nullopt;
  return row;
}

std::optional<DeadLetter> RecordDecoder::dead_letter(const DeadLetterId &id, BytesView value) {
  if (!messagepack::tokenize(value, tokens_, record_tokens_max)) return std::nullopt;
  TokenReader reader(tokens_);
  begin(reader, dead_letter_fields);
  DeadLetter letter;
  letter.id = id;
  const auto reason = outcome_of_code(reader.positive());
  reader.require(reason && traits_of(*reason).final && !traits_of(*reason).success);
  letter.reason = reason.value_or(Outcome::invalid);
  letter.detail = reader.string();
  letter.bytes = reader.binary();
  letter.operation_id = read_text(reader);
  letter.type = read_text(reader);
  letter.effect_key = read_text(reader);
  letter.sender = read_sender(reader);
  letter.sequence = Sequence{reader.positive()};
  letter.issued_at = read_time(reader);
  letter.deliveries = reader.positive();
  letter.receives = reader.positive();
  letter.redrives = reader.positive();
  letter.first_at = read_time(reader);
  letter.last_at = read_time(reader);
  letter.stored_digest = read_digest(reader);
  letter.offered_digest = read_digest(reader);
  const std::uint64_t phase = reader.positive();
  reader.require(phase <= static_cast<std::uint64_t>(Phase::failed));
  letter.stored_phase = static_cast<Phase>(phase);
  letter.errors = read_errors(reader);
  letter.effect_unknown = reader.boolean();
  letter.relay_key = reader.binary_or_nil().value_or(BytesView{});
  if (!reader.at_end()) return std::nullopt;
  return letter;
}

std::optional<AuditRow> RecordDecoder::audit(BytesView value) {
  if (!messagepack::tokenize(value, tokens_, record_tokens_max)) return std::nullopt;
  TokenReader reader(tokens_);
  begin(reader, audit_fields);
  AuditRow row;
  row.at = read_time(reader);
  row.action = reader.string();
  const auto id = DeadLetterId::from(reader.binary());
  reader.require(id.has_value());
  row.dead_letter = id.value_or(DeadLetterId{});
  row.outcome = read_text(reader);
  row.by = reader.string();
  row.why = reader.string();
  row.key = reader.binary_or_nil().value_or(BytesView{});
  if (!reader.at_end()) return std::nullopt;
  return row;
}

std::optional<CrashCount> RecordDecoder::crash_count(BytesView value) {
  if (!messagepack::tokenize(value, tokens_, record_tokens_max)) return std::nullopt;
  TokenReader reader(tokens_);
  begin(reader, crash_count_fields);
  CrashCount count;
  count.crashes = reader.positive();
  count.redriven = reader.boolean();
  if (!reader.at_end()) return std::nullopt;
  return count;
}

void encode_operation(const OperationRecord &record, Bytes &out) {
  Writer writer = begin(out, operation_fields);
  writer.positive(static_cast<std::uint64_t>(record.phase)).binary(record.digest.view()).binary(record.result);
  writer.string(record.operation_id).string(record.type);
  write_text(writer, record.effect_key);
  write_time(writer, record.issued_at);
  write_time(writer, record.committed_at);
  writer.string(record.worker_build).positive(static_cast<std::uint64_t>(record.durability));
}

void encode_queued(const QueueRow &row, Bytes &out) {
  Writer writer = begin(out, queue_fields);
  writer.positive(static_cast<std::uint64_t>(row.state)).boolean(row.effect_unknown).binary(row.bytes);
  writer.string(row.operation_id).string(row.type);
  write_text(writer, row.effect_key);
  writer.binary(row.sender.view()).positive(number_of(row.sequence));
  write_time(writer, row.issued_at);
  write_time(writer, row.accepted_at);
  write_time(writer, row.changed_at);
  writer.positive(row.receives).positive(row.receives_total).positive(row.redrives);
  writer.positive(row.token.boot).positive(row.token.count);
  write_text(writer, row.owner);
  write_errors(writer, row.errors);
}

void encode_relayed(const RelayRow &row, Bytes &out) {
  Writer writer = begin(out, relay_fields);
  writer.binary(row.job);
  write_time(writer, row.created_at);
  writer.positive(row.redrives);
}

void encode_dead_letter(const DeadLetter &letter, Bytes &out) {
  Writer writer = begin(out, dead_letter_fields);
  writer.positive(static_cast<std::uint64_t>(letter.reason)).string(letter.detail).binary(letter.bytes);
  write_text(writer, letter.operation_id);
  write_text(writer, letter.type);
  write_text(writer, letter.effect_key);
  writer.binary(letter.sender.view()).positive(number_of(letter.sequence));
  write_time(writer, letter.issued_at);
  writer.positive(letter.deliveries).positive(letter.receives).positive(letter.redrives);
  write_time(writer, letter.first_at);
  write_time(writer, letter.last_at);
  write_digest(writer, letter.stored_digest);
  write_digest(writer, letter.offered_digest);
  writer.positive(static_cast<std::uint64_t>(letter.stored_phase));
  write_errors(writer, letter.errors);
  writer.boolean(letter.effect_unknown);
  letter.relay_key.empty() ? writer.nil() : writer.binary(letter.relay_key);
}

void encode_audit(const AuditRow &row, Bytes &out) {
  Writer writer = begin(out, audit_fields);
  write_time(writer, row.at);
  writer.string(row.action).binary(row.dead_letter.view());
  write_text(writer, row.outcome);
  writer.string(row.by).string(row.why);
  row.key.empty() ? writer.nil() : writer.binary(row.key);
}

void encode_crash_count(const CrashCount &count, Bytes &out) {
  begin(out, crash_count_fields).positive(count.crashes).boolean(count.redriven);
}

Bytes audit_name(std::uint64_t number) {
  Bytes name(audit_prefix);
  for (int shift = 56; shift >= 0; shift -= 8)
    name += static_cast<char>(static_cast<unsigned char>(number >> shift));
  return name;
}

std::optional<std::uint64_t> audit_number(BytesView name) {
  if (name.size() != audit_prefix.size() + 8 || name.substr(0, audit_prefix.size()) != audit_prefix) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  for (const char byte : name.substr(audit_prefix.size()))
    number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

Bytes crashes_name(BytesView key) {
  return Bytes(crashes_prefix).append(key);
}

DeadLetterId dead_letter_id(const Key &key, const Digest &digest, Outcome reason, Digester &digester) {
  const Digest key_hash = digester.plain(key.bytes);
  Bytes verdict(digest.view());
  verdict += static_cast<char>(reason);
  const Digest verdict_hash = digester.plain(verdict);
  DeadLetterId id;
  std::copy_n(key_hash.bytes.begin(), 8, id.bytes.begin());
  std::copy_n(verdict_hash.bytes.begin(), 8, id.bytes.begin() + 8);
  return id;
}

DeadLetterId dead_letter_id(BytesView bytes, Digester &digester) {
  const Digest hash = digester.plain(bytes);
  DeadLetterId id;
  std::copy_n(hash.bytes.begin(), DeadLetterId::size, id.bytes.begin());
  return id;
}

OperationRow to_row(const OperationRecord &record) {
  return {.phase = record.phase,
          .digest = record.digest,
          .result = Bytes(record.result),
          .operation_id = std::string(record.operation_id),
          .type = std::string(record.type),
          .effect_key = std::string(record.effect_key),
          .issued_at = record.issued_at,
          .committed_at = record.committed_at,
          .worker_build = std::string(record.worker_build),
          .durability = record.durability};
}

} // namespace onced::store
