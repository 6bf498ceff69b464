#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/messagepack.hpp"
#include "onced/store.hpp"
#include "store/rows/queue_row.hpp"
#include "store/rows/relay_row.hpp"

// The values of the column families (docs/storage.md): MessagePack arrays that begin with the format's version.
namespace onced::store {

// The format whose fields the rows have that are written now: formats 3 and 4 changed none of them.
inline constexpr unsigned row_format = 2;

// A row of `operations`, its bytes borrowed.
struct OperationRecord {
  Phase phase = Phase::committed;
  Digest digest;
  BytesView result;
  std::string_view operation_id;
  std::string_view type;
  std::string_view effect_key; // empty: none
  WallTime issued_at;          // zero: none
  WallTime committed_at;
  std::string_view worker_build;
  Durability durability = Durability::fsync;
};

// How often the inline handler of a job has ended the process.
struct CrashCount {
  std::uint64_t crashes = 0;
  bool redriven = false; // counted anew since a redrive, which is still to be answered
  bool operator==(const CrashCount &) const = default;
};

// Decodes rows one after another and keeps its buffer between them. Nothing where the bytes are no row. One thread at a
// time.
class RecordDecoder {
public:
  [[nodiscard]] std::optional<OperationRecord> operation(BytesView value);
  [[nodiscard]] std::optional<QueueRow> queued(BytesView value);
  [[nodiscard]] std::optional<RelayRow> relayed(BytesView value);
  [[nodiscard]] std::optional<DeadLetter> dead_letter(const DeadLetterId &id, BytesView value);
  // Without its number, which is its key's.
  [[nodiscard]] std::optional<AuditRow> audit(BytesView value);
  [[nodiscard]] std::optional<CrashCount> crash_count(BytesView value);

private:
  std::vector<messagepack::Token> tokens_;
};

// Each replaces what `out` holds, keeping its memory.
void encode_operation(const OperationRecord &record, Bytes &out);
void encode_queued(const QueueRow &row, Bytes &out);
void encode_relayed(const RelayRow &row, Bytes &out);
void encode_dead_letter(const DeadLetter &letter, Bytes &out);
void encode_audit(const AuditRow &row, Bytes &out);
void encode_crash_count(const CrashCount &count, Bytes &out);

// The id of the dead letter that a delivery becomes: 8 bytes of SHA-256 of its key, then 8 of its digest and the
// reason. Where the bytes are no job: the first 16 bytes of their SHA-256. So the same bad delivery, repeated, is one
// row.
[[nodiscard]] DeadLetterId dead_letter_id(const Key &key, const Digest &digest, Outcome reason, Digester &digester);
[[nodiscard]] DeadLetterId dead_letter_id(BytesView bytes, Digester &digester);

// "audit/" and the number, 8 bytes big-endian: the names of the audit's rows in `meta`, in order.
inline constexpr std::string_view audit_prefix = "audit/";
[[nodiscard]] Bytes audit_name(std::uint64_t number);
// Nothing where the name is none of the audit.
[[nodiscard]] std::optional<std::uint64_t> audit_number(BytesView name);
// "crashes/" and the key of the job: the name in `meta` of its count.
inline constexpr std::string_view crashes_prefix = "crashes/";
[[nodiscard]] Bytes crashes_name(BytesView key);

[[nodiscard]] OperationRow to_row(const OperationRecord &record);

} // namespace onced::store
