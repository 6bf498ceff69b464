#include "store/reading.hpp"

#include "store/rows/records.hpp"

namespace onced::store {

using engine::damaged_row;
using engine::Family;

Result<std::optional<OperationRow>> read_operation(const engine::Engine &engine, const Key &key) {
  const auto value = engine.view()->get(Family::operations, key.bytes);
  if (!value) return tl::unexpected(value.error());
  if (!*value) return std::nullopt;
  RecordDecoder decoder;
  const auto record = decoder.operation(**value);
  if (!record) return tl::unexpected(damaged_row(engine.place(), Family::operations, key.bytes));
  return to_row(*record);
}

Result<Counts> count_rows(const engine::Engine &engine) {
  Counts counts;
  const auto view = engine.view();
  RecordDecoder decoder;
  std::optional<Error> damaged;
  auto scanned = view->scan({.family = Family::operations}, [&](BytesView key, BytesView value) {
    const auto record = decoder.operation(value);
    if (!record) damaged = damaged_row(engine.place(), Family::operations, key);
    if (record && record->phase == Phase::committed) ++counts.results;
    return !damaged;
  });
  if (!scanned) return tl::unexpected(scanned.error());
  if (damaged) return tl::unexpected(*damaged);
  for (const auto &[family, count] : {std::pair{Family::dead_letters, &counts.dead_letters},
                                      {Family::queue, &counts.pending},
                                      {Family::relay, &counts.relayed}}) {
    std::uint64_t rows = 0;
    scanned = view->scan({.family = family}, [&](BytesView, BytesView) { return ++rows != 0; });
    if (!scanned) return tl::unexpected(scanned.error());
    *count = rows;
  }
  return counts;
}

Result<std::optional<DeadLetter>> read_letter(const engine::Engine &engine, const DeadLetterId &id) {
  const auto value = engine.view()->get(Family::dead_letters, id.view());
  if (!value) return tl::unexpected(value.error());
  if (!*value) return std::nullopt;
  auto letter = RecordDecoder().dead_letter(id, **value);
  if (!letter) return tl::unexpected(damaged_row(engine.place(), Family::dead_letters, id.view()));
  return letter;
}

Result<DeadLetterPage> find_letters(const engine::Engine &engine, std::size_t rows,
                                    const std::optional<DeadLetterId> &after, const DeadLetterFilter &filter,
                                    std::size_t scanned_max) {
  DeadLetterPage page;
  RecordDecoder decoder;
  std::optional<Error> damaged;
  std::optional<DeadLetterId> last = after;
  std::size_t scanned = 0;
  std::size_t scanned_bytes = 0;
  const auto visit = [&](BytesView key, BytesView value) {
    const auto id = DeadLetterId::from(key);
    if (id && after && *id == *after) return true;
    if (page.letters.size() == rows || scanned == scanned_max ||
        scanned_bytes >= limits::dead_letters_scanned_bytes_max) {
      page.next = last; // there is at least this one more
      return false;
    }
    auto letter = id ? decoder.dead_letter(*id, value) : std::nullopt;
    if (!letter) {
      damaged = damaged_row(engine.place(), Family::dead_letters, key);
      return false;
    }
    ++scanned;
    scanned_bytes += value.size();
    last = letter->id;
    const bool wanted =
        (!filter.reason || letter->reason == *filter.reason) && (filter.type.empty() || letter->type == filter.type);
    if (wanted) page.letters.push_back(std::move(*letter));
    return true;
  };
  const auto read =
      engine.view()->scan({.family = Family::dead_letters, .from = after ? after->view() : BytesView{}}, visit);
  if (!read) return tl::unexpected(read.error());
  if (damaged) return tl::unexpected(*damaged);
  return page;
}

Result<std::vector<AuditRow>> read_audit(const engine::Engine &engine, std::size_t rows, std::uint64_t after) {
  std::vector<AuditRow> changes;
  if (after == UINT64_MAX) return changes;
  RecordDecoder decoder;
  std::optional<Error> damaged;
  const Bytes from = audit_name(after + 1);
  const auto visit = [&](BytesView key, BytesView value) {
    if (changes.size() == rows) return false;
    const auto number = audit_number(key);
    auto row = number ? decoder.audit(value) : std::nullopt;
    if (!row) {
      damaged = damaged_row(engine.place(), Family::meta, key);
      return false;
    }
    row->number = *number;
    changes.push_back(std::move(*row));
    return true;
  };
  const auto read = engine.view()->scan({.family = Family::meta, .from = from, .prefix = audit_prefix}, visit);
  if (!read) return tl::unexpected(read.error());
  if (damaged) return tl::unexpected(*damaged);
  return changes;
}

} // namespace onced::store
