#include <memory>

#include <benchmark/benchmark.h>

#include "benchmarks.hpp"
#include "sources.hpp"

// New jobs through Store::commit, parsed ahead, every batch synced. The first argument: deliveries in a batch. Threads
// commit beside each other, each its own jobs.
namespace onced::bench::micro {
namespace {

// Of all threads of one benchmark; the first makes it before the loop, where the others wait, and drops it after.
using SharedStore = std::shared_ptr<std::unique_ptr<OwnStore>>;

void commit(benchmark::State &state, const SharedStore &shared) {
  const bool first = state.thread_index() == 0;
  if (first) *shared = std::make_unique<OwnStore>();
  Deliveries deliveries(make_jobs(static_cast<std::size_t>(state.range(0)), 4));
  auto number = static_cast<std::uint64_t>(state.thread_index()) << 32U;
  for (auto _ : state) {
    state.PauseTiming();
    deliveries.renew(number++);
    state.ResumeTiming();
    (*shared)->commit(deliveries.all(), Outcome::stored);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  if (!first) return;
  (*shared)->expect_results(static_cast<std::uint64_t>(state.iterations() * state.range(0) * state.threads()));
  shared->reset();
}

} // namespace

void register_commits(Registry &registry) {
  const auto shared = std::make_shared<std::unique_ptr<OwnStore>>();
  auto *registered = registry.add("commit/new_jobs", [shared](benchmark::State &state) { commit(state, shared); });
  registered->ArgName("batch")->UseRealTime()->Threads(1)->Threads(2);
  for (const int batch : {1, 16, 64, 256, 1024})
    registered->Arg(batch);
}

} // namespace onced::bench::micro
