#include "store/suspects/suspects.hpp"

#include <algorithm>

#include "rocksdb/slices.hpp"

namespace onced::store {
namespace {

using CrashCounts = std::map<Bytes, CrashCount, std::less<>>;

// What turns the rows of `before` into those of `after`.
rocksdb::Status put_changes(const Database &database, const CrashCounts &before, const CrashCounts &after,
                            rocksdb::WriteBatch &batch) {
  rocksdb::Status status;
  for (const auto &[key, count] : before) {
    if (status.ok() && !after.contains(key)) status = batch.Delete(database.meta(), crashes_name(key));
  }
  Bytes value;
  for (const auto &[key, count] : after) {
    const auto known = before.find(key);
    if (!status.ok() || (known != before.end() && known->second == count)) continue;
    encode_crash_count(count, value);
    status = batch.Put(database.meta(), crashes_name(key), value);
  }
  return status;
}

} // namespace

Result<void> Suspects::begin(const Database &database, const std::filesystem::path &directory,
                             rocksdb::WriteBatch &batch) {
  auto slots = RunningSlots::open(directory);
  if (slots) {
    slots_ = std::move(*slots);
  } else {
    blind_ = slots.error();
  }
  const std::scoped_lock lock(mutex_);
  if (auto read = read_counts(database); !read) return read;
  const Counts before = counts_;
  count_found();
  forget_settled(database);
  forget_excess();
  size_ = counts_.size();
  const auto status = put_changes(database, before, counts_, batch);
  if (!status.ok()) return tl::unexpected(status_error(status, database.path()));
  return {};
}

// A damaged row says nothing here, and is not touched: `verify` tells of it.
Result<void> Suspects::read_counts(const Database &database) {
  RecordDecoder decoder;
  const std::unique_ptr<rocksdb::Iterator> rows(database.db()->NewIterator(scan_options(), database.meta()));
  for (rows->Seek(slice_of(crashes_prefix)); rows->Valid() && rows->key().starts_with(slice_of(crashes_prefix));
       rows->Next()) {
    const auto count = decoder.crash_count(view_of(rows->value()));
    if (count) counts_[Bytes(view_of(rows->key()).substr(crashes_prefix.size()))] = *count;
  }
  if (!rows->status().ok()) return tl::unexpected(status_error(rows->status(), database.path()));
  return {};
}

// One that ran alone has done it; else it may have been any. Copies of one job, run beside each other, count once.
void Suspects::count_found() {
  if (!slots_) return;
  auto found = slots_->found();
  const bool one_alone = std::any_of(found.begin(), found.end(), [](const auto &running) { return running.alone; });
  for (const RunningSlots::Found &running : found) {
    if (running.alone == one_alone && just_now_.insert(running.key).second) ++counts_[running.key].crashes;
  }
}

// A key that has a row is answered from it, so no inline handler runs for it any more.
void Suspects::forget_settled(const Database &database) {
  rocksdb::PinnableSlice row;
  std::erase_if(counts_, [&](const auto &suspect) {
    row.Reset();
    return database.db()->Get(rocksdb::ReadOptions(), database.operations(), slice_of(suspect.first), &row).ok();
  });
}

void Suspects::forget_excess() {
  while (counts_.size() > limits::suspects_max) {
    const auto least = std::min_element(counts_.begin(), counts_.end(), [&](const auto &left, const auto &right) {
      const auto rank = [&](const auto &suspect) {
        return std::pair(just_now_.contains(suspect.first), suspect.second.crashes);
      };
      return rank(left) < rank(right);
    });
    counts_.erase(least);
  }
}

void Suspects::counted() {
  if (slots_) slots_->clear();
}

HandlerCrashes Suspects::crashes() const {
  const std::scoped_lock lock(mutex_);
  HandlerCrashes told{.suspects = {}, .blind = blind_};
  for (const auto &[key, count] : counts_)
    told.suspects.push_back({.key = key, .crashes = count.crashes, .just_now = just_now_.contains(key)});
  return told;
}

std::optional<CrashCount> Suspects::find(BytesView key) const {
  if (none()) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  const auto found = counts_.find(key);
  return found != counts_.end() ? std::optional(found->second) : std::nullopt;
}

void Suspects::set(BytesView key, const CrashCount &count) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = counts_.find(key); found != counts_.end()) found->second = count;
}

void Suspects::remove(BytesView key) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = counts_.find(key); found != counts_.end()) counts_.erase(found);
  size_.store(counts_.size(), std::memory_order_release);
}

std::unique_lock<std::shared_mutex> Suspects::alone() {
  const std::scoped_lock turn(turn_);
  return std::unique_lock(running_);
}

std::shared_lock<std::shared_mutex> Suspects::beside_others() {
  const std::scoped_lock turn(turn_);
  return std::shared_lock(running_);
}

} // namespace onced::store
