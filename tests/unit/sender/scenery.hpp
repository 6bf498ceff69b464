#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include "onced/sender.hpp"
#include "unit/sender/fake_worker.hpp"

// A sender on real sockets, against a worker that is played by the test. The sender's clock stands still unless the
// test moves it, so no acknowledgement times out and no greeting is repeated by the passing of time: what happens,
// happens for the reason that the test gives.
namespace onced::testing {

class StandingClock final : public Clock {
public:
  [[nodiscard]] WallTime wall() override { return WallTime{std::chrono::microseconds{1'764'500'000'000'000}}; }
  [[nodiscard]] MonotonicTime monotonic() override { return start_ + std::chrono::nanoseconds(passed_); }
  void pass(std::chrono::nanoseconds time) { passed_ += time.count(); }

private:
  MonotonicTime start_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> passed_{0};
};

struct Scenery {
  FakeWorker worker;
  StandingClock clock;
  SeededRandom random{7};
  SilentLog log;
  SenderOptions options;
  std::unique_ptr<Sender> sender; // last: its thread ends before what it uses

  Scenery() {
    options.jobs_endpoint = worker.jobs_endpoint();
    options.replies_endpoint = worker.replies_endpoint();
    worker.while_no_greeting = [this] { clock.pass(std::chrono::milliseconds{100}); };
  }

  void start() {
    auto started = Sender::start(options, clock, random, log);
    if (!started) throw std::runtime_error(describe(started.error()));
    sender = std::move(*started);
  }
  void start_and_greet() {
    start();
    worker.hear_new_sender();
    worker.greet(boot_number(1));
  }
  Sequence submit(Bytes job) {
    const auto sequence = sender->submit(std::move(job), soon());
    if (!sequence) throw std::runtime_error(describe(sequence.error()));
    return *sequence;
  }
  Settled next() {
    auto settled = sender->next_settled(soon());
    if (!settled) throw std::runtime_error(describe(settled.error()));
    return std::move(*settled);
  }
  void settle(const FakeWorker::Arrived &job, Outcome outcome) {
    worker.reply({.sequence = job.sequence, .tag = job.tag, .outcome = outcome, .result = {}, .detail = {}});
  }
};

} // namespace onced::testing
