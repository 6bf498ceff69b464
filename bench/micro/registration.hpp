#pragma once

#include <atomic>
#include <functional>
#include <string>

#include <benchmark/benchmark.h>

namespace onced::bench::micro {

// What a program has registered with Google Benchmark, and whether any of it failed.
class Registry {
public:
  Registry() = default;
  // Closes the stores and removes their directories, also when a benchmark has failed: not among what goes at the end
  // of the process.
  ~Registry() { benchmark::ClearRegisteredBenchmarks(); }
  Registry(const Registry &) = delete;
  Registry &operator=(const Registry &) = delete;

  // As benchmark::RegisterBenchmark. Where `run` throws, in whichever thread, its benchmark has failed, and the others
  // go on. The result is Google Benchmark's.
  benchmark::internal::Benchmark *add(const std::string &name, std::function<void(benchmark::State &)> run);

  [[nodiscard]] bool failed() const { return failed_; }

private:
  std::atomic<bool> failed_{false};
};

} // namespace onced::bench::micro
