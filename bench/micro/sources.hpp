#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/scratch_directory.hpp"
#include "onced/digest.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "onced/store.hpp"

// What the benchmarks work on, from a fixed seed.
namespace onced::bench::micro {

// Jobs of the form that bench/workload.hpp sends, with so many numbers each.
[[nodiscard]] std::vector<Bytes> make_jobs(std::size_t count, std::size_t numbers);

// Deliveries parsed ahead: one a job. What they borrow is here too, so it stays in place.
class Deliveries {
public:
  explicit Deliveries(std::vector<Bytes> jobs);
  Deliveries(const Deliveries &) = delete;
  Deliveries &operator=(const Deliveries &) = delete;

  [[nodiscard]] std::span<const Delivery> all() const { return deliveries_; }
  // Gives each the id of another job, in no order; with another number, of yet others.
  void renew(std::uint64_t number);

private:
  struct Parsed {
    Job job;
    Key key;
  };
  std::vector<Bytes> jobs_;
  std::deque<Parsed> parsed_;
  std::vector<Delivery> deliveries_;
};

// A synced store in a directory of its own.
class OwnStore {
public:
  // With a cache of committed keys of so many bytes; 0: none.
  explicit OwnStore(std::size_t cache_bytes = 0);

  // Every settlement must be of this outcome. Any thread.
  void commit(std::span<const Delivery> batch, Outcome expected);
  // What was in the memtable is in a table then: an opening writes out what it recovers.
  void reopen();
  [[nodiscard]] const Store &store() const { return *store_; }
  void expect_results(std::uint64_t results) const;

private:
  std::size_t cache_bytes_;
  ScratchDirectory directory_;
  SystemClock clock_;
  SystemRandom random_;
  Handlers handlers_ = built_in_handlers();
  DirectoryLock lock_;
  std::unique_ptr<Store> store_;
};

} // namespace onced::bench::micro
