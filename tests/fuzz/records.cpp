// Any bytes as a value on disk: of the store's families and of an outbox. Verifies that what is read is the same once
// encoded and read again, and that not one byte may follow a record. Not: RocksDB, which checks its own files.
#include "store/rows/records.hpp"
#include "fuzz.hpp"
#include "onced/limits.hpp"
#include "onced/version.hpp"
#include "rocksdb/sum_rows.hpp"
#include "store/rows/older_sums.hpp"

// The rows of an outbox are read and written inside this file, and nowhere else.
#include "sender/outbox.cpp" // NOLINT(bugprone-suspicious-include)

namespace onced::fuzz {
namespace {

// `read` gives a record or nothing, `write` replaces its second argument by the bytes of a record.
template <class Read, class Write> void check(BytesView value, Read &&read, Write &&write) {
  const auto record = read(value);
  if (!record) return;
  Bytes again;
  write(*record, again);
  require(is_same_value(value, again), "a record encoded again is the same");
  require(read(again).has_value(), "an encoded record is one");
  require(!read(Bytes(value) + '\0').has_value(), "nothing may follow a record");
}

void read_store_rows(BytesView value) {
  static store::RecordDecoder decoder; // lives through all the bytes, as the store's do
  const auto with = [](auto member) { return [=](BytesView bytes) { return (decoder.*member)(bytes); }; };
  using store::RecordDecoder;
  const auto operation = [](BytesView bytes) {
    const auto record = decoder.operation(bytes);
    require(!record || record->phase <= Phase::failed, "an operation is in one of the phases");
    require(!record || record->durability <= Durability::page_cache, "an operation has one of the durabilities");
    return record;
  };
  check(value, operation, store::encode_operation);
  check(
      value, [](BytesView bytes) { return decoder.dead_letter(DeadLetterId{}, bytes); }, store::encode_dead_letter);
  check(value, with(&RecordDecoder::queued), store::encode_queued);
  check(value, with(&RecordDecoder::relayed), store::encode_relayed);
  check(value, rocks::decode_sums, rocks::encode_sums);
  check(value, with(&RecordDecoder::audit), store::encode_audit);
  check(value, with(&RecordDecoder::crash_count), store::encode_crash_count);
  for (const std::string_view name : {"counters/0", "letter-bytes/0", "changes"})
    static_cast<void>(store::decode_older_sum(name, value));
}

void read_outbox_rows(BytesView value) {
  static sender::RowDecoder decoder;
  check(
      value, [](BytesView bytes) { return decoder.decode(bytes); },
      [](const sender::RowView &row, Bytes &out) {
        require(row.job.size() <= limits::job_bytes_max, "a job of an outbox can be sent");
        sender::encode({.sequence = Sequence{1}, .tag = row.tag, .issued_at = row.issued_at, .job = Bytes(row.job)},
                       out);
      });
  check(value, messagepack::decode_number,
        [](std::uint64_t number, Bytes &out) { out = messagepack::encode_number(number); });
}

void read_audit_name(BytesView name) {
  const auto number = store::audit_number(name);
  require(!number || store::audit_name(*number) == name, "the name of an audit row is that of its number");
}

void read_relay_key(BytesView key) {
  const auto parts = store::relay_key_of(key);
  require(!parts || store::relay_key(parts->to, parts->parent, parts->index) == key,
          "the key of a message is that of its parts");
}

} // namespace
} // namespace onced::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace onced::fuzz;
  const onced::BytesView bytes = view_of(data, size);
  read_store_rows(bytes);
  read_outbox_rows(bytes);
  read_audit_name(bytes);
  read_relay_key(bytes);
  return 0;
}
