// Verifies the kill switch: what it reads, and that a process dies by SIGKILL at exactly the arrival it names. Not
// verified: that the worker and the sender arrive where they should (the contract tests).
#include "onced/kill_point.hpp"

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/copy.hpp"
#include "support/document.hpp"

namespace {

using onced::KillPoint;
using onced::KillSwitch;
using onced::ProcessEnd;
using onced::testing::do_in_copy;

// A counter that outlives the child that counts.
class SharedCounter {
public:
  SharedCounter()
      : memory_(mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                     -1, 0)) {
    REQUIRE(memory_ != MAP_FAILED);
    counter_ = new (memory_) std::atomic<std::uint64_t>(0);
  }
  ~SharedCounter() { munmap(memory_, sizeof(std::atomic<std::uint64_t>)); }
  SharedCounter(const SharedCounter &) = delete;
  SharedCounter &operator=(const SharedCounter &) = delete;

  void add() { ++*counter_; }
  [[nodiscard]] std::uint64_t value() const { return *counter_; }

private:
  void *memory_;
  std::atomic<std::uint64_t> *counter_ = nullptr;
};

void arrive_from_threads(KillSwitch &kill_switch, int threads, int arrivals_each) {
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&kill_switch, arrivals_each] {
      for (int arrival = 0; arrival < arrivals_each; ++arrival)
        kill_switch.arrive(KillPoint::worker_parsed);
    });
  }
  for (std::thread &thread : running)
    thread.join();
}

} // namespace

TEST_CASE("every kill point is read by its name and fires there only") {
  for (std::size_t index = 0; index < onced::kill_point_names.size(); ++index) {
    const auto named = static_cast<KillPoint>(index);
    CAPTURE(onced::name_of(named));
    auto kill_switch = KillSwitch::parse(std::string(onced::name_of(named)) + ":1");
    REQUIRE(kill_switch.has_value());

    CHECK(do_in_copy([&] { kill_switch->arrive(named); }).is_kill());
    CHECK(do_in_copy([&] {
            for (std::size_t other = 0; other < onced::kill_point_names.size(); ++other) {
              if (other != index) kill_switch->arrive(static_cast<KillPoint>(other));
            }
          }).is_success());
  }
}

TEST_CASE("the documented kill points are those of the program in their order") {
  const auto rows = onced::testing::document_table("operations.md", "kill points");
  REQUIRE(rows.size() == onced::kill_point_names.size());
  for (std::size_t index = 0; index < rows.size(); ++index)
    CHECK(rows[index].at(0) == onced::kill_point_names[index]);
}

TEST_CASE("text that is no kill point is refused with the list of points") {
  for (const char *text :
       {"", ":", "worker.parsed", "worker.parsed:", "worker.parsed:0", "worker.parsed:-1", "worker.parsed:+1",
        "worker.parsed: 1", "worker.parsed:1 ", "worker.parsed:1x", "worker.parsed:1:1",
        "worker.parsed:18446744073709551616", "worker.unknown:1", "Worker.parsed:1", ":1", " worker.parsed:1"}) {
    CAPTURE(text);
    const auto parsed = KillSwitch::parse(text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code == onced::ErrorCode::usage);
    CHECK(parsed.error().concerns.find(text) != std::string::npos);
    CHECK_FALSE(parsed.error().cause.empty());
    for (const std::string_view name : onced::kill_point_names)
      CHECK(parsed.error().remedy.find(name) != std::string::npos);
  }
}

TEST_CASE("the largest number of arrivals is read") {
  CHECK(KillSwitch::parse("sender.after-send:18446744073709551615").has_value());
}

TEST_CASE("the process is killed at exactly the arrival that was named") {
  for (const std::uint64_t last : {1U, 2U, 5U}) {
    CAPTURE(last);
    SharedCounter shared;
    auto kill_switch = KillSwitch::parse("worker.before-commit:" + std::to_string(last));
    REQUIRE(kill_switch.has_value());
    const ProcessEnd end = do_in_copy([&] {
      for (int arrival = 0; arrival < 10; ++arrival) {
        kill_switch->arrive(KillPoint::worker_before_commit);
        shared.add();
      }
    });
    CHECK(end.is_kill());
    CHECK(shared.value() == last - 1);
  }
}

TEST_CASE("arrivals are counted over all threads together") {
  KillSwitch one_more_than_come(KillPoint::worker_parsed, 4001);
  CHECK(do_in_copy([&] { arrive_from_threads(one_more_than_come, 8, 500); }).is_success());
  KillSwitch as_many_as_come(KillPoint::worker_parsed, 4000);
  CHECK(do_in_copy([&] { arrive_from_threads(as_many_as_come, 8, 500); }).is_kill());
}

TEST_CASE("a switch that is not set never fires") {
  KillSwitch unset;
  CHECK(do_in_copy([&] { arrive_from_threads(unset, 2, 1000); }).is_success());
}
