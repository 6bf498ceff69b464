#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "onced/digest.hpp"
#include "onced/job.hpp"
#include "onced/store.hpp"

// The jobs of a seed. Each is a function of its number, so any number of them takes no memory; their ids lie in no
// order.
namespace onced::bench::scale {

[[nodiscard]] Key key_of_job(std::uint64_t seed, std::uint64_t number);

// The result of the job, as it is stored.
[[nodiscard]] Bytes result_of_job(std::uint64_t number);

// Deliveries of jobs, made and parsed ahead of their commit. Keeps its memory from batch to batch. One thread.
class Batch {
public:
  explicit Batch(std::uint64_t seed) : seed_(seed) {}
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  void clear() { deliveries_.clear(); }
  void add(std::uint64_t number);
  [[nodiscard]] std::span<const Delivery> deliveries() const { return deliveries_; }

  // Throws std::runtime_error unless each delivery has this outcome and the result of its job.
  void check(std::span<const Settlement> settlements, Outcome expected) const;

private:
  // What a delivery borrows.
  struct Parsed {
    std::uint64_t number = 0;
    Bytes bytes;
    Job job;
    Key key;
  };

  std::uint64_t seed_;
  JobParser parser_;
  Digester digester_;
  std::deque<Parsed> parsed_; // a deque: deliveries point into it while it grows
  std::vector<Delivery> deliveries_;
};

} // namespace onced::bench::scale
