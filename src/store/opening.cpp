#include "store/opening.hpp"

#include <algorithm>

#include "store/mend.hpp"
#include "store/reading.hpp"
#include "store/recount.hpp"
#include "store/rows/older_sums.hpp"

namespace onced::store {
namespace {

using engine::Counter;
using engine::Counters;
using engine::Family;

// The sums, and what the first unit of the boot has to write of them.
struct Sums {
  Counters now;
  Counters missing;         // from the engine's own
  std::vector<Bytes> older; // names of rows of an older format, which go
};

Result<Counters> read_older_sums(const engine::Engine &engine, bool accept_damage, std::vector<Bytes> &names) {
  Counters sums;
  std::optional<Error> damaged;
  const auto view = engine.view();
  for (const std::string_view prefix : older_sum_prefixes) {
    const auto read = view->scan({.family = Family::meta, .prefix = prefix}, [&](BytesView name, BytesView value) {
      if (!is_older_sum(name)) return true;
      names.emplace_back(name);
      const auto row = decode_older_sum(name, value);
      if (row) sums += *row;
      if (!row && !accept_damage) damaged = engine::damaged_row(engine.place(), Family::meta, name);
      return !damaged;
    });
    if (!read) return tl::unexpected(read.error());
    if (damaged) return tl::unexpected(*damaged);
  }
  return sums;
}

// Where rows were lost, so were sums, and not by as much: they are counted anew.
Result<Sums> read_sums(StoreContext &context) {
  Sums sums;
  const auto kept = context.engine.view()->counters();
  if (!kept) return tl::unexpected(kept.error());
  const auto older = read_older_sums(context.engine, context.options.accept_loss, sums.older);
  if (!older) return tl::unexpected(older.error());
  sums.now = *kept;
  sums.now += *older;
  if (context.options.accept_loss) {
    const auto counted = count_by_scan(context.engine);
    if (!counted) return tl::unexpected(counted.error());
    sums.now = *counted;
  }
  sums.missing = sums.now;
  sums.missing -= *kept;
  return sums;
}

// A sum below nothing is a fault that `verify` tells of.
RowAmount amount_of(const Counters &sums, Counter rows, Counter bytes) {
  return {.rows = static_cast<std::uint64_t>(std::max<std::int64_t>(sums[rows], 0)),
          .bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(sums[bytes], 0))};
}

Result<AuditRange> read_audit_range(const engine::Engine &engine) {
  AuditRange range;
  const auto view = engine.view();
  for (const bool backwards : {false, true}) {
    const auto read = view->scan({.family = Family::meta, .prefix = audit_prefix, .backwards = backwards},
                                 [&](BytesView name, BytesView) {
                                   const auto number = audit_number(name);
                                   if (backwards) range.last = number.value_or(0);
                                   if (!backwards) range.first = number.value_or(1);
                                   return false;
                                 });
    if (!read) return tl::unexpected(read.error());
  }
  return range;
}

BootId boot_id(std::uint64_t count, std::uint64_t chance) {
  BootId boot;
  for (std::size_t at = 0; at < 8; ++at) {
    boot.bytes[at] = static_cast<std::uint8_t>(count >> (8 * (7 - at)));
    boot.bytes[8 + at] = static_cast<std::uint8_t>(chance >> (8 * at));
  }
  return boot;
}

} // namespace

Result<Opened> begin_boot(StoreContext &context, Random &random) {
  engine::Engine &engine = context.engine;
  // It stays above those of all leases that are known, where the count of boots itself was lost.
  const auto leased = context.options.accept_loss ? greatest_boot_by_scan(engine) : Result<std::uint64_t>(0);
  if (!leased) return tl::unexpected(leased.error());
  const auto boot = engine.begin_boot(*leased + 1, random);
  if (!boot) return tl::unexpected(boot.error());
  if (context.options.accept_loss) {
    if (auto mended = mend_queue(context); !mended) return tl::unexpected(mended.error());
  }
  const auto sums = read_sums(context);
  if (!sums) return tl::unexpected(sums.error());
  context.letter_room.add(amount_of(sums->now, Counter::dead_letters, Counter::dead_letter_bytes));
  context.queue_room.add(amount_of(sums->now, Counter::queued, Counter::queued_bytes));
  context.relay_room.add(amount_of(sums->now, Counter::relayed, Counter::relayed_bytes));
  const auto audit = read_audit_range(engine);
  if (!audit) return tl::unexpected(audit.error());
  auto crashes = context.suspects.begin(engine, context.options.directory);
  if (!crashes) return tl::unexpected(crashes.error());
  UnitOfWork unit(context);
  const auto ended = unit.run({}, [&] {
    for (const Bytes &name : sums->older)
      unit.erase(Family::meta, name);
    for (std::size_t at = 0; at < engine::counter_count; ++at) {
      if (sums->missing.all().at(at) != 0) unit.add_signed(static_cast<Counter>(at), sums->missing.all().at(at));
    }
    for (const auto &[key, count] : *crashes)
      put_crash_count(unit, key, count);
    return !sums->older.empty() || sums->missing != Counters{} || !crashes->empty();
  });
  if (const auto healthy = engine.health(); !ended && !healthy) return tl::unexpected(healthy.error());
  if (!ended) return tl::unexpected(ended.error());
  context.suspects.counted();
  return Opened{.boot = boot_id(*boot, random.next()), .audit = *audit};
}

} // namespace onced::store
