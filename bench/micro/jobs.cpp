#include <stdexcept>

#include <benchmark/benchmark.h>

#include "benchmarks.hpp"
#include "sources.hpp"

namespace onced::bench::micro {
namespace {

constexpr std::size_t jobs_count = 1024;

void count(benchmark::State &state, std::size_t bytes_each) {
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes_each));
}

// The argument: numbers in a job.
void parse(benchmark::State &state) {
  const auto jobs = make_jobs(jobs_count, static_cast<std::size_t>(state.range(0)));
  JobParser parser;
  Job job;
  std::size_t next = 0;
  for (auto _ : state) {
    if (!parser.parse(jobs[next++ % jobs_count], job)) throw std::runtime_error("a delivery is no job");
    benchmark::DoNotOptimize(job.payload.data());
  }
  count(state, jobs.front().size());
}

// Of a map whose names are not in order, as a producer may write it.
void canonical_form(benchmark::State &state) {
  const auto values = make_jobs(jobs_count, static_cast<std::size_t>(state.range(0)));
  JobParser parser;
  std::size_t next = 0;
  for (auto _ : state) {
    const auto canonical = parser.canonical(values[next++ % jobs_count]);
    if (!canonical) throw std::runtime_error("a value has no canonical form");
    benchmark::DoNotOptimize(canonical->data());
  }
  count(state, values.front().size());
}

// The argument: bytes of the payload. What is digested does not matter.
void digest(benchmark::State &state) {
  const Bytes payload(static_cast<std::size_t>(state.range(0)), 'x');
  Digester digester;
  for (auto _ : state) {
    const Digest digested = digester.intent("sum", payload);
    benchmark::DoNotOptimize(digested.bytes.data());
  }
  count(state, payload.size());
}

} // namespace

void register_jobs(Registry &registry) {
  registry.add("job/parse", parse)->ArgName("numbers")->Arg(4)->Arg(64)->Arg(1024);
  registry.add("job/canonical_form", canonical_form)->ArgName("numbers")->Arg(4)->Arg(64)->Arg(1024);
  registry.add("job/digest", digest)->ArgName("bytes")->Arg(50)->Arg(200)->Arg(1000)->Arg(16'384);
}

} // namespace onced::bench::micro
