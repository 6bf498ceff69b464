#include "subject.hpp"

#include <stdexcept>

#include "onced/limits.hpp"
#include "worker/memory_plan.hpp"

namespace onced::bench::scale {
namespace {

template <class T> T require(Result<T> result) {
  if (!result) throw std::runtime_error(describe(result.error()));
  return std::move(*result);
}

worker::MemoryPlan plan_of(const Setting &setting) {
  const WorkerOptions defaults;
  return require(worker::plan_memory(setting.memory_bytes, defaults.senders, {.batch = defaults.threads}));
}

} // namespace

StoreOptions worker_options(const Setting &setting, const std::filesystem::path &directory) {
  const worker::MemoryPlan plan = plan_of(setting);
  StoreOptions options;
  options.directory = directory;
  options.block_cache_bytes = plan.block_cache_bytes;
  options.committed_cache_bytes = plan.committed_cache_bytes;
  return options;
}

std::size_t planned_bytes(const Setting &setting) {
  const worker::MemoryPlan plan = plan_of(setting);
  return limits::process_bytes + plan.block_cache_bytes + plan.committed_cache_bytes +
         WorkerOptions().threads * limits::worker_thread_bytes;
}

Subject::Subject(const Setting &setting, const std::filesystem::path &directory, Durability durability)
    : lock_(require(DirectoryLock::take(directory, DirectoryLock::Mode::exclusive))) {
  StoreOptions options = worker_options(setting, directory);
  options.durability = durability;
  options.counters = &counters_;
  const auto begin = std::chrono::steady_clock::now();
  store_ = require(Store::open(options, clock_, random_));
  opening_ = std::chrono::steady_clock::now() - begin;
}

std::vector<Settlement> Subject::commit(std::span<const Delivery> batch) {
  return require(store_->commit(batch, handlers_));
}

std::uint64_t Subject::count() const {
  return require(store_->count()).results;
}

bool Subject::holds(const Key &key, BytesView result) const {
  const auto row = require(store_->get(key));
  return row && row->phase == Phase::committed && row->result == result;
}

} // namespace onced::bench::scale
