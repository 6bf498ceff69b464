#include "store/suspects/suspects.hpp"

#include <algorithm>

namespace onced::store {

using engine::Family;

Result<Suspects::Changes> Suspects::begin(const engine::Engine &engine, const std::filesystem::path &directory) {
  auto slots = RunningSlots::open(directory);
  if (slots) {
    slots_ = std::move(*slots);
  } else {
    blind_ = slots.error();
  }
  const std::scoped_lock lock(mutex_);
  if (auto read = read_counts(engine); !read) return tl::unexpected(read.error());
  const Counts before = counts_;
  count_found();
  forget_settled(engine);
  forget_excess();
  size_ = counts_.size();
  Changes changes;
  for (const auto &[key, count] : before) {
    if (!counts_.contains(key)) changes[key] = std::nullopt;
  }
  for (const auto &[key, count] : counts_) {
    const auto known = before.find(key);
    if (known == before.end() || known->second != count) changes[key] = count;
  }
  return changes;
}

// A damaged row says nothing here, and is not touched: `verify` tells of it.
Result<void> Suspects::read_counts(const engine::Engine &engine) {
  RecordDecoder decoder;
  return engine.view()->scan({.family = Family::meta, .prefix = crashes_prefix}, [&](BytesView name, BytesView value) {
    const auto count = decoder.crash_count(value);
    if (count) counts_[Bytes(name.substr(crashes_prefix.size()))] = *count;
    return true;
  });
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
void Suspects::forget_settled(const engine::Engine &engine) {
  const auto view = engine.view();
  std::erase_if(counts_, [&](const auto &suspect) {
    const auto row = view->get(Family::operations, suspect.first);
    return row && row->has_value();
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
