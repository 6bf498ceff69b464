#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "onced/store.hpp"
#include "onced/worker.hpp"

namespace onced::bench::scale {

// What a store is opened with.
struct Setting {
  std::uint64_t seed = 1; // of the jobs
  std::size_t memory_bytes = WorkerOptions().memory_bytes;
};

// As a worker with so much memory opens its store. Throws std::runtime_error where it is too little for a worker.
[[nodiscard]] StoreOptions worker_options(const Setting &setting, const std::filesystem::path &directory);

// The parts of a worker's plan that are in this program too: the process, both caches, two threads that commit.
[[nodiscard]] std::size_t planned_bytes(const Setting &setting);

// An open store, its directory locked. Throws std::runtime_error for every error.
class Subject {
public:
  Subject(const Setting &setting, const std::filesystem::path &directory, Durability durability);
  Subject(const Subject &) = delete;
  Subject &operator=(const Subject &) = delete;

  // Any thread.
  [[nodiscard]] std::vector<Settlement> commit(std::span<const Delivery> batch);
  // By reading every row.
  [[nodiscard]] std::uint64_t count() const;
  [[nodiscard]] bool holds(const Key &key, BytesView result) const;

  [[nodiscard]] std::uint64_t cache_hits() const { return counters_.cache_hits; }
  [[nodiscard]] std::chrono::nanoseconds opening() const { return opening_; } // Store::open alone

private:
  SystemClock clock_;
  SystemRandom random_;
  Handlers handlers_ = built_in_handlers();
  StoreCounters counters_;
  DirectoryLock lock_;
  std::chrono::nanoseconds opening_{};
  std::unique_ptr<Store> store_;
};

} // namespace onced::bench::scale
