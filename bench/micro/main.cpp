// What the parts cost by themselves: parsing, canonical form, digest, envelope, look-up, commit, and the sender's
// machine. Every benchmark says items_per_second, an item being a delivery, and checks what comes out; where that is
// not what it must be, the program exits with 1. It does not measure the parts together, sockets, or a database that is
// larger than memory. Options are those of Google Benchmark (--help).
#include <cstdio>
#include <exception>

#include <benchmark/benchmark.h>

#include "benchmarks.hpp"
#include "onced/version.hpp"

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 64;

int run(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return exit_usage;
  benchmark::AddCustomContext("onced", std::string(onced::worker_build()));
  for (const auto &[name, number] : onced::version().libraries)
    benchmark::AddCustomContext(std::string(name), number);
  onced::bench::micro::Registry registry;
  for (const auto register_part : {onced::bench::micro::register_jobs, onced::bench::micro::register_envelopes,
                                   onced::bench::micro::register_lookups, onced::bench::micro::register_commits,
                                   onced::bench::micro::register_redelivery})
    register_part(registry);
  const std::size_t benchmarks = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (registry.failed()) return exit_failed;
  if (benchmarks > 0) return 0;
  std::fprintf(stderr, "micro: no benchmark has such a name\n");
  return exit_failed;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "micro: %s\n", error.what());
    return exit_failed;
  }
}
