#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>

#include "engine/engine.hpp"
#include "onced/store.hpp"
#include "store/rows/records.hpp"
#include "store/suspects/running_slots.hpp"

namespace onced::store {

// The jobs whose inline handlers have ended the process, by their keys; as a rule there are none. An opening finds them
// in the slots of the process before and counts them in `meta`. They only become fewer until the next one. Any thread.
class Suspects {
public:
  // A row of counts that is to be put; nothing: it is to be erased.
  using Changes = std::map<Bytes, std::optional<CrashCount>>;

  // At an opening for writing: reads the counts, counts what the slots say, and tells what has changed. Where the slots
  // cannot be used it goes without: see `crashes`. Errors: `store_unavailable`.
  [[nodiscard]] Result<Changes> begin(const engine::Engine &engine, const std::filesystem::path &directory);
  // Those changes are on stable storage, so the slots may forget. Ended in between, a crash is counted twice.
  void counted();

  [[nodiscard]] HandlerCrashes crashes() const;

  [[nodiscard]] RunningSlot take_slot() { return slots_ ? slots_->take() : RunningSlot(); }

  // Seen empty, it stays so.
  [[nodiscard]] bool none() const { return size_.load(std::memory_order_acquire) == 0; }
  [[nodiscard]] std::optional<CrashCount> find(BytesView key) const;
  // Once the row says so. What is no suspect does not become one.
  void set(BytesView key, const CrashCount &count);
  void remove(BytesView key);

  // Held while an inline handler runs, as long as there are suspects: a suspect runs while no other handler does, so
  // that only one can have ended the process.
  [[nodiscard]] std::unique_lock<std::shared_mutex> alone();
  [[nodiscard]] std::shared_lock<std::shared_mutex> beside_others();

private:
  using Counts = std::map<Bytes, CrashCount, std::less<>>;

  [[nodiscard]] Result<void> read_counts(const engine::Engine &engine);
  void count_found();
  void forget_settled(const engine::Engine &engine);
  void forget_excess();

  std::unique_ptr<RunningSlots> slots_;
  std::optional<Error> blind_;            // why there are no slots
  std::set<Bytes, std::less<>> just_now_; // those that this opening has counted

  mutable std::mutex mutex_; // guards the next
  Counts counts_;
  std::atomic<std::size_t> size_{0}; // of it

  std::mutex turn_; // taken first, so that handlers beside each other do not keep a suspect waiting for ever
  std::shared_mutex running_;
};

} // namespace onced::store
