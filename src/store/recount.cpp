#include "store/recount.hpp"

#include <algorithm>

#include "store/rows/records.hpp"

namespace onced::store {

using engine::Counter;
using engine::Family;

Result<engine::Counters> count_by_scan(const engine::Engine &engine) {
  engine::Counters sums;
  RecordDecoder decoder;
  const auto view = engine.view();
  const auto scan = [&](Family family, const std::function<void(BytesView)> &count) {
    return view->scan({.family = family}, [&](BytesView, BytesView value) {
      count(value);
      return true;
    });
  };
  const auto add = [&](Counter rows, Counter bytes, std::size_t job_bytes) {
    ++sums[rows];
    sums[bytes] += static_cast<std::int64_t>(job_bytes);
  };
  auto read = scan(Family::operations, [&](BytesView value) {
    const auto row = decoder.operation(value);
    if (!row || row->phase == Phase::committed) ++sums[Counter::results];
  });
  if (read)
    read = scan(Family::dead_letters, [&](BytesView value) {
      const auto row = decoder.dead_letter({}, value);
      add(Counter::dead_letters, Counter::dead_letter_bytes, row ? row->bytes.size() : 0);
    });
  if (read)
    read = scan(Family::queue, [&](BytesView value) {
      const auto row = decoder.queued(value);
      add(Counter::queued, Counter::queued_bytes, row ? row->bytes.size() : 0);
    });
  if (read)
    read = scan(Family::relay, [&](BytesView value) {
      const auto row = decoder.relayed(value);
      add(Counter::relayed, Counter::relayed_bytes, row ? row->job.size() : 0);
    });
  if (!read) return tl::unexpected(read.error());
  return sums;
}

Result<std::uint64_t> greatest_boot_by_scan(const engine::Engine &engine) {
  std::uint64_t greatest = 0;
  RecordDecoder decoder;
  const auto read = engine.view()->scan({.family = Family::queue}, [&](BytesView, BytesView value) {
    if (const auto row = decoder.queued(value)) greatest = std::max(greatest, row->token.boot);
    return true;
  });
  if (!read) return tl::unexpected(read.error());
  return greatest;
}

} // namespace onced::store
