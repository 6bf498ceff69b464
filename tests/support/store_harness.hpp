#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/scratch_directory.hpp"
#include "onced/digest.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "onced/store.hpp"
#include "support/job_bytes.hpp"

namespace onced::testing {

// Shows the time it was last set to. Set it only while nothing else reads it.
class ManualClock final : public Clock {
public:
  [[nodiscard]] WallTime wall() override { return now; }
  [[nodiscard]] MonotonicTime monotonic() override { return MonotonicTime{now.time_since_epoch()}; }

  WallTime now{std::chrono::microseconds{1'700'000'000'000'000}};
};

// Builds deliveries as a worker does, and keeps alive what they borrow. One thread at a time.
class Batch {
public:
  Batch() = default;
  explicit Batch(const std::vector<Bytes> &jobs) {
    for (const Bytes &job : jobs)
      add(job);
  }
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  Delivery &add(Bytes bytes) {
    Entry &entry = entries_.emplace_back();
    entry.bytes = std::move(bytes);
    Delivery delivery;
    delivery.bytes = entry.bytes;
    delivery.tag = digester_.tag(entry.bytes);
    delivery.sequence = Sequence{entries_.size()};
    delivery.sender.bytes.fill(0x5E);
    delivery.issued_at = WallTime{std::chrono::microseconds{1'699'999'999'000'000}};
    if (const auto parsed = parser_.parse(entry.bytes, entry.job); parsed) {
      assign_key(entry.job, entry.key);
      delivery.job = &entry.job;
      delivery.key = &entry.key;
      delivery.digest = digester_.intent(entry.job.type, entry.job.payload);
    } else {
      delivery.defect = name_of(parsed.error());
    }
    return deliveries_.emplace_back(delivery);
  }

  [[nodiscard]] std::span<const Delivery> view() const { return deliveries_; }
  [[nodiscard]] std::size_t size() const { return deliveries_.size(); }

private:
  struct Entry {
    Bytes bytes;
    Job job;
    Key key;
  };
  JobParser parser_;
  Digester digester_;
  std::deque<Entry> entries_; // their addresses last
  std::vector<Delivery> deliveries_;
};

// A store in a directory of its own, with the built-in handlers, which may be closed and opened again.
class StoreHarness {
public:
  StoreHarness() { options.directory = directory.path(); }
  // In a directory that outlives the harness: for a process that will be killed, and cannot clean up.
  explicit StoreHarness(const std::filesystem::path &borrowed) : directory(ScratchDirectory::borrowed(borrowed)) {
    options.directory = directory.path();
  }

  // What is refused is thrown: tests of refusals call `try_open`.
  Store &open() {
    auto opened = try_open();
    if (!opened) throw std::runtime_error(describe(opened.error()));
    return *store;
  }
  Result<void> try_open() {
    store.reset();
    auto opened = Store::open(options, clock, random);
    if (!opened) return tl::unexpected(opened.error());
    store = std::move(*opened);
    return {};
  }
  void close() { store.reset(); }
  Store &reopen() { return open(); }

  [[nodiscard]] std::vector<Settlement> commit(const Batch &batch) {
    auto settled = store->commit(batch.view(), handlers);
    if (!settled) throw std::runtime_error(describe(settled.error()));
    return std::move(*settled);
  }
  [[nodiscard]] std::vector<Settlement> commit(const std::vector<Bytes> &jobs) { return commit(Batch(jobs)); }
  [[nodiscard]] Settlement commit_one(Bytes job) { return commit(std::vector<Bytes>{std::move(job)}).at(0); }

  [[nodiscard]] Counts counts() const {
    auto counted = store->count();
    if (!counted) throw std::runtime_error(describe(counted.error()));
    return *counted;
  }
  [[nodiscard]] std::vector<DeadLetter> dead_letters() const {
    auto letters = store->dead_letters(10'000, std::nullopt);
    if (!letters) throw std::runtime_error(describe(letters.error()));
    return std::move(*letters);
  }
  [[nodiscard]] std::optional<OperationRow> row(std::string_view operation_id, std::string_view type = "sum") const {
    auto got = store->get(key_of_operation(type, operation_id));
    if (!got) throw std::runtime_error(describe(got.error()));
    return std::move(*got);
  }

  ScratchDirectory directory;
  ManualClock clock;
  SeededRandom random{1};
  Handlers handlers = built_in_handlers();
  StoreOptions options;
  std::unique_ptr<Store> store;
};

// Who changes dead letters.
inline const Operator kim{.by = "kim", .why = "INC-7"};

// The outcomes alone, in order.
[[nodiscard]] inline std::vector<Outcome> outcomes_of(const std::vector<Settlement> &settlements) {
  std::vector<Outcome> outcomes;
  for (const Settlement &settlement : settlements)
    outcomes.push_back(settlement.outcome);
  return outcomes;
}

} // namespace onced::testing

namespace onced {
// How doctest shows an outcome when it is not the expected one.
inline std::ostream &operator<<(std::ostream &out, Outcome outcome) {
  return out << traits_of(outcome).name;
}
inline std::ostream &operator<<(std::ostream &out, ErrorCode code) {
  return out << name_of(code);
}
} // namespace onced
