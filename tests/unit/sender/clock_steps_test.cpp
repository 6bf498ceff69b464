// The wall clock under a sender is set forward and back by an hour: it is recorded, and no timer depends on it. The
// worker is played by the test. Does not verify the real clocks: tests/contract/clock_steps_test.cpp does.
#include <atomic>
#include <chrono>

#include <doctest/doctest.h>

#include "onced/sender.hpp"
#include "support/store_harness.hpp"
#include "unit/sender/fake_worker.hpp"

namespace onced::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

// Two clocks that stand still, each unless it is moved by itself.
class TwoClocks final : public Clock {
public:
  [[nodiscard]] WallTime wall() override { return WallTime{std::chrono::microseconds(wall_us_)}; }
  [[nodiscard]] MonotonicTime monotonic() override { return start_ + std::chrono::nanoseconds(passed_ns_); }

  void step_wall(std::chrono::microseconds by) { wall_us_ += by.count(); }
  void pass(std::chrono::nanoseconds time) { passed_ns_ += time.count(); }

private:
  MonotonicTime start_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> wall_us_{1'764'500'000'000'000};
  std::atomic<std::int64_t> passed_ns_{0};
};

} // namespace

TEST_CASE("a step of the wall clock by an hour sends nothing again and holds no resend back") {
  constexpr seconds timeout{60};
  for (const hours step : {hours(1), hours(-1)}) {
    CAPTURE(step.count());
    FakeWorker worker;
    TwoClocks clock;
    SeededRandom random{7};
    SilentLog log;
    SenderOptions options;
    options.jobs_endpoint = worker.jobs_endpoint();
    options.replies_endpoint = worker.replies_endpoint();
    options.acknowledgement_timeout = timeout;
    const auto sender = Sender::start(options, clock, random, log);
    REQUIRE(sender.has_value());
    worker.hear_new_sender();
    worker.greet(boot_number(1));

    REQUIRE((*sender)->submit(job_bytes("before", {1}), soon()).has_value());
    const auto before = worker.take(1)[0];
    clock.step_wall(step);
    REQUIRE((*sender)->submit(job_bytes("after", {1}), soon()).has_value());
    const auto after = worker.take(1)[0]; // and not the first again
    CHECK(after.job == job_bytes("after", {1}));
    CHECK(after.issued_at - before.issued_at == step);
    // It greets every few seconds; had it wanted to send jobs again, it would have done so by then.
    for (int greetings = 0; greetings < 2; ++greetings) {
      worker.forget_hellos();
      clock.pass(seconds(6));
      worker.hear_hello();
    }
    CHECK_FALSE(worker.has_jobs());
    CHECK((*sender)->stats().resends == 0);

    clock.pass(2 * timeout); // with its jitter
    const auto again = worker.take(2);
    CHECK(again[0].attempt == 2);
    CHECK(again[0].issued_at == before.issued_at);
    CHECK(again[1].issued_at == after.issued_at);
    CHECK((*sender)->stats().resends == 2);
  }
}

} // namespace onced::testing
