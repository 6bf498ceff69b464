#include "batches.hpp"

#include <atomic>
#include <exception>
#include <latch>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include "held_signals.hpp"
#include "process_usage.hpp"

namespace onced::bench::limits {
namespace {

using Clock = std::chrono::steady_clock;

struct Lane {
  BatchWork work;
  std::vector<std::chrono::nanoseconds> times;
  std::exception_ptr failure;
};

void run_batches(Lane &lane, std::atomic<std::size_t> &next, std::size_t batches) {
  try {
    for (std::size_t batch = next++; batch < batches; batch = next++) {
      const auto begin = Clock::now();
      lane.work(batch);
      lane.times.push_back(Clock::now() - begin);
      if (HeldSignals::pending()) throw std::runtime_error("told to stop");
    }
  } catch (...) {
    lane.failure = std::current_exception();
    next = batches; // the others end too
  }
}

} // namespace

Measured time_batches(std::size_t batches, unsigned threads, const std::function<BatchWork()> &make_work) {
  std::vector<Lane> lanes(threads);
  for (Lane &lane : lanes) {
    lane.work = make_work();
    lane.times.reserve(batches);
  }
  std::atomic<std::size_t> next{0};
  std::latch begun(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::jthread> running;
  running.reserve(threads);
  for (Lane &lane : lanes) {
    running.emplace_back([&] {
      begun.arrive_and_wait();
      run_batches(lane, next, batches);
    });
  }
  const auto cpu_before = usage_of(::getpid()).cpu;
  const auto begin = Clock::now();
  begun.arrive_and_wait();
  running.clear(); // waits for them
  Measured measured;
  measured.elapsed = Clock::now() - begin;
  measured.cpu = usage_of(::getpid()).cpu - cpu_before;
  for (const Lane &lane : lanes) {
    if (lane.failure) std::rethrow_exception(lane.failure);
    measured.batches.insert(measured.batches.end(), lane.times.begin(), lane.times.end());
  }
  return measured;
}

} // namespace onced::bench::limits
