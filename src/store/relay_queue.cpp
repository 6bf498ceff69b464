#include "store/relay_queue.hpp"

#include "rocksdb/measured_commit.hpp"
#include "rocksdb/slices.hpp"
#include "store/lane_writes.hpp"

namespace onced::store {

rocksdb::Status put_relayed(rocksdb::Transaction &transaction, const Database &database,
                            std::span<const RelayEntry> entries, Bytes &record) {
  for (const RelayEntry &entry : entries) {
    encode_relayed(entry.row, record);
    auto status = transaction.PutUntracked(database.relay(), slice_of(entry.key), slice_of(record));
    if (!status.ok()) return status;
  }
  return {};
}

RelayQueue::RelayQueue(const CommitContext &context, Standing &standing, LaneSeats &seats)
    : context_(context), standing_(standing), seats_(seats) {}

// --- Reading --------------------------------------------------------------------------------------------------------

Result<RelayPage> RelayQueue::page(std::string_view to, BytesView after, std::size_t rows) const {
  RelayPage page;
  if (context_.database.relay() == nullptr) return page;
  RecordDecoder decoder;
  const Bytes prefix = relay_prefix(to);
  const std::unique_ptr<rocksdb::Iterator> iterator(
      context_.database.db()->NewIterator(scan_options(), context_.database.relay()));
  Bytes last(after);
  std::size_t bytes = 0;
  for (iterator->Seek(slice_of(after.empty() ? BytesView(prefix) : after)); iterator->Valid(); iterator->Next()) {
    const BytesView key = view_of(iterator->key());
    if (!key.starts_with(prefix)) break;
    if (key == after) continue;
    const bool full = bytes != 0 && bytes + iterator->value().size() > limits::relay_read_bytes;
    if (page.entries.size() == rows || full) {
      page.next = std::move(last); // there is at least this one more
      break;
    }
    last = Bytes(key);
    auto row = decoder.relayed(view_of(iterator->value()));
    if (!row) ++page.damaged;
    if (!row) continue;
    bytes += row->job.size();
    page.entries.push_back({.key = Bytes(key), .row = std::move(*row)});
  }
  if (!iterator->status().ok()) return tl::unexpected(status_error(iterator->status(), context_.database.path()));
  return page;
}

Result<std::vector<std::string>> RelayQueue::destinations(std::size_t max) const {
  std::vector<std::string> names;
  if (context_.database.relay() == nullptr) return names;
  const std::unique_ptr<rocksdb::Iterator> iterator(
      context_.database.db()->NewIterator(scan_options(), context_.database.relay()));
  iterator->SeekToFirst();
  while (iterator->Valid() && names.size() < max) {
    const auto key = relay_key_of(view_of(iterator->key()));
    if (!key) {
      iterator->Next(); // no row of ours: `verify` names it
      continue;
    }
    names.emplace_back(key->to);
    iterator->Seek(slice_of(relay_prefix(names.back()) + '\xFF')); // a parent's key begins with a tag below it
  }
  if (!iterator->status().ok()) return tl::unexpected(status_error(iterator->status(), context_.database.path()));
  return names;
}

// --- Changing -------------------------------------------------------------------------------------------------------

Result<bool> RelayQueue::remove(std::span<const Bytes> keys) {
  const bool synced = context_.options.durability == Durability::fsync;
  return change(synced, [&](rocksdb::Status &status) {
    std::optional<RelayRow> row;
    for (const Bytes &key : keys) {
      if (status = take_out(key, row); !status.ok()) return false;
    }
    return true;
  });
}

Result<RelayBuried> RelayQueue::bury(BytesView key, Outcome outcome, std::string_view detail) {
  RelayBuried buried = RelayBuried::busy;
  const auto changed = change(true, [&](rocksdb::Status &status) {
    buried = RelayBuried::gone;
    std::optional<RelayRow> row;
    if (status = take_out(key, row); !status.ok() || !row) return false;
    buried = RelayBuried::busy;
    bool refused = false;
    status = put_letter(letter_of(key, *row, outcome, detail, now_, digester_), refused);
    if (!status.ok() || refused) return false;
    buried = RelayBuried::buried;
    return true;
  });
  if (!changed) return tl::unexpected(changed.error());
  return *changed ? buried : RelayBuried::busy;
}

// `refused`: the dead letters are at their cap, and nothing may be written.
rocksdb::Status RelayQueue::put_letter(DeadLetter letter, bool &refused) {
  Job job;
  if (parser_.parse(letter.bytes, job)) {
    letter.operation_id = job.operation_id;
    letter.type = job.type;
    letter.effect_key = job.effect_key;
    letter.offered_digest = digester_.intent(job.type, job.payload);
  }
  return put_failed_letter(*transaction_, context_, std::move(letter), {new_counters_, letter_reserved_}, decoder_,
                           record_, refused);
}

// Nothing: it is gone, or damaged, and then it goes too.
rocksdb::Status RelayQueue::take_out(BytesView key, std::optional<RelayRow> &row) {
  row.reset();
  rocksdb::PinnableSlice found;
  auto status = transaction_->GetForUpdate(rocksdb::ReadOptions(), context_.database.relay(), slice_of(key), &found);
  if (status.IsNotFound()) return {};
  if (!status.ok()) return status;
  row = decoder_.relayed(view_of(found));
  new_counters_.relay.remove(row ? row->job.size() : 0);
  return transaction_->Delete(context_.database.relay(), slice_of(key), true);
}

// --- The transaction ------------------------------------------------------------------------------------------------

Result<bool> RelayQueue::change(bool synced, const Step &step) {
  const std::scoped_lock lock(mutex_);
  if (auto checked = standing_.check_writable(); !checked) return tl::unexpected(checked.error());
  if (!seat_) seat_ = seats_.take();
  auto changed = try_change(synced, step);
  if (!changed && changed.error().code == ErrorCode::store_unavailable) standing_.give_up(changed.error());
  return changed;
}

Result<bool> RelayQueue::try_change(bool synced, const Step &step) {
  for (unsigned tries = 0; tries <= limits::commit_retries_max; ++tries) {
    begin(synced);
    rocksdb::Status status;
    if (!step(status) && status.ok()) {
      abandon();
      return true;
    }
    if (status.ok() && new_counters_.relay.removed == seat_->counters.relay.removed) {
      abandon(); // all were gone
      return true;
    }
    if (status.ok()) status = put_counters();
    if (status.ok()) status = commit();
    if (status.ok()) return true;
    abandon();
    if (!is_retryable(status)) return tl::unexpected(write_error(status, context_.database.path()));
  }
  return false;
}

rocksdb::Status RelayQueue::put_counters() {
  return put_lane_counters(*transaction_, context_.database, new_counters_, lane_counters_name(seat_->number),
                           lane_bytes_name(seat_->number), letter_reserved_.bytes != 0, record_);
}

void RelayQueue::begin(bool synced) {
  synced_ = synced;
  now_ = context_.clock.wall();
  new_counters_ = seat_->counters;
  transaction_.reset(context_.database.transactions()->BeginTransaction(
      synced ? synced_write() : rocksdb::WriteOptions(), rocksdb::TransactionOptions(), transaction_.release()));
  transaction_->DisableIndexing(); // nothing is read back from the batch
}

rocksdb::Status RelayQueue::commit() {
  context_.arrive(KillPoint::relay_before_removal);
  auto status = measured_commit(context_.database, *transaction_, context_.clock, context_.options.counters);
  if (!status.ok()) return status;
  if (synced_ && context_.options.durability == Durability::fsync) context_.database.mark_durable(*transaction_);
  const FlowCounters &before = seat_->counters.relay;
  const FlowCounters &after = new_counters_.relay;
  context_.relay_room.release(
      {.rows = after.removed - before.removed, .bytes = after.bytes_removed - before.bytes_removed});
  seat_->counters = new_counters_;
  letter_reserved_ = {};
  context_.arrive(KillPoint::relay_after_removal);
  return status;
}

void RelayQueue::abandon() {
  const auto status = transaction_->Rollback(); // of a failed commit it fails too; the store is given up then
  status.PermitUncheckedError();
  context_.letter_room.release(std::exchange(letter_reserved_, {}));
}

} // namespace onced::store
