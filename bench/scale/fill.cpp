#include "fill.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <fmt/core.h>

#include "held_signals.hpp"
#include "jobs.hpp"

namespace onced::bench::scale {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t batch_jobs = 4096;

// Any thread.
class Progress {
public:
  explicit Progress(std::uint64_t keys) : keys_(keys), told_keys_(keys) {}

  void add(std::uint64_t keys) {
    const std::scoped_lock lock(mutex_);
    keys_ += keys;
    const auto now = Clock::now();
    const std::chrono::duration<double> since = now - told_at_;
    if (since < std::chrono::seconds(5)) return;
    fmt::print(stderr, "  filling: {:>11} keys, {:>8.0f} a second\n", keys_,
               static_cast<double>(keys_ - told_keys_) / since.count());
    told_at_ = now;
    told_keys_ = keys_;
  }

private:
  std::mutex mutex_;
  std::uint64_t keys_;
  std::uint64_t told_keys_;
  Clock::time_point told_at_ = Clock::now();
};

// Takes the next jobs that are left, until there are none.
void commit_what_is_left(Subject &subject, std::uint64_t seed, std::atomic<std::uint64_t> &next, std::uint64_t end,
                         Progress &progress) {
  Batch batch(seed);
  for (std::uint64_t first = next.fetch_add(batch_jobs); first < end; first = next.fetch_add(batch_jobs)) {
    batch.clear();
    for (std::uint64_t number = first; number < std::min(first + batch_jobs, end); ++number)
      batch.add(number);
    batch.check(subject.commit(batch.deliveries()), Outcome::stored);
    progress.add(batch.deliveries().size());
    if (HeldSignals::pending()) throw std::runtime_error("told to stop");
  }
}

} // namespace

void fill(Subject &subject, std::uint64_t seed, std::uint64_t first, std::uint64_t end) {
  Progress progress(first);
  std::atomic<std::uint64_t> next{first};
  std::array<std::exception_ptr, 2> failures;
  std::array<std::jthread, failures.size()> threads;
  for (std::size_t at = 0; at < threads.size(); ++at) {
    threads[at] = std::jthread([&, at] {
      try {
        commit_what_is_left(subject, seed, next, end, progress);
      } catch (...) {
        failures[at] = std::current_exception();
        next = end; // the other ends too
      }
    });
  }
  for (std::jthread &thread : threads)
    thread.join();
  for (const std::exception_ptr &failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

} // namespace onced::bench::scale
