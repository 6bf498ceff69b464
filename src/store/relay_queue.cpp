#include "store/relay_queue.hpp"

#include "store/row_changes.hpp"

namespace onced::store {
namespace {

using engine::Counter;
using engine::Family;
using engine::Found;

// Locks a message and takes it out. Nothing: it is gone, or damaged, and then it goes too; `found` tells.
std::optional<RelayRow> take_out(UnitOfWork &unit, StoreContext &context, BytesView key, bool &found) {
  const Found row = unit.lock(Family::relay, key);
  found = row.state != Found::State::absent;
  if (!found) return std::nullopt;
  auto message = row.state == Found::State::present ? unit.decoder.relayed(row.value) : std::nullopt;
  const std::uint64_t bytes = message ? message->job.size() : 0;
  unit.erase(Family::relay, key);
  unit.subtract(Counter::relayed, 1);
  unit.subtract(Counter::relayed_bytes, bytes);
  unit.release(context.relay_room, {.rows = 1, .bytes = bytes});
  return message;
}

void name_job(DeadLetter &letter, UnitOfWork &unit) {
  Job job;
  if (!unit.parser.parse(letter.bytes, job)) return;
  letter.operation_id = job.operation_id;
  letter.type = job.type;
  letter.effect_key = job.effect_key;
  letter.offered_digest = unit.digester.intent(job.type, job.payload);
}

constexpr UnitOfWork::Kind removing(engine::Sync sync) {
  return {.before = KillPoint::relay_before_removal, .after = KillPoint::relay_after_removal, .sync = sync};
}

} // namespace

// --- Reading --------------------------------------------------------------------------------------------------------

Result<RelayPage> RelayQueue::page(std::string_view to, BytesView after, std::size_t rows) const {
  RelayPage page;
  RecordDecoder decoder;
  const Bytes prefix = relay_prefix(to);
  Bytes last(after);
  std::size_t bytes = 0;
  const auto visit = [&](BytesView key, BytesView value) {
    if (key == after) return true;
    const bool full = bytes != 0 && bytes + value.size() > limits::relay_read_bytes;
    if (page.entries.size() == rows || full) {
      page.next = std::move(last); // there is at least this one more
      return false;
    }
    last = Bytes(key);
    auto row = decoder.relayed(value);
    if (!row) ++page.damaged;
    if (!row) return true;
    bytes += row->job.size();
    page.entries.push_back({.key = Bytes(key), .row = std::move(*row)});
    return true;
  };
  const auto read = context_.engine.view()->scan({.family = Family::relay, .from = after, .prefix = prefix}, visit);
  if (!read) return tl::unexpected(read.error());
  return page;
}

Result<std::vector<std::string>> RelayQueue::destinations(std::size_t max) const {
  std::vector<std::string> names;
  const auto view = context_.engine.view();
  Bytes from;
  for (bool more = true; more && names.size() < max;) {
    more = false;
    const auto visit = [&](BytesView bytes, BytesView) {
      const auto key = relay_key_of(bytes);
      if (!key) return true; // no row of ours: `verify` names it
      names.emplace_back(key->to);
      from = relay_prefix(key->to) + '\xFF'; // a parent's key begins with a tag below it
      more = true;
      return false;
    };
    const auto read = view->scan({.family = Family::relay, .from = from}, visit);
    if (!read) return tl::unexpected(read.error());
  }
  return names;
}

// --- Changing -------------------------------------------------------------------------------------------------------

Result<bool> RelayQueue::remove(std::span<const Bytes> keys) {
  const auto unit = units_.take(context_);
  const auto step = [&] {
    bool any = false;
    for (const Bytes &key : keys) {
      bool found = false;
      static_cast<void>(take_out(*unit, context_, key, found));
      any = any || found;
    }
    return any;
  };
  const auto ended = unit->run(removing(context_.sync()), step);
  if (!ended) return tl::unexpected(ended.error());
  return *ended != UnitOfWork::Ended::contended;
}

Result<RelayBuried> RelayQueue::bury(BytesView key, Outcome outcome, std::string_view detail) {
  const auto unit = units_.take(context_);
  RelayBuried buried = RelayBuried::busy;
  const auto step = [&] {
    buried = RelayBuried::gone;
    bool found = false;
    const auto row = take_out(*unit, context_, key, found);
    if (!row) return false;
    DeadLetter letter = letter_of(key, *row, outcome, detail, unit->now(), unit->digester);
    name_job(letter, *unit);
    const bool put = put_letter(*unit, context_, std::move(letter), fold_failed);
    buried = put ? RelayBuried::buried : RelayBuried::busy;
    return put;
  };
  const auto ended = unit->run(removing(engine::Sync::stable), step);
  if (!ended) return tl::unexpected(ended.error());
  return *ended == UnitOfWork::Ended::contended ? RelayBuried::busy : buried;
}

} // namespace onced::store
