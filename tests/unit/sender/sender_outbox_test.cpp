// The sender with an outbox, against a worker that is played by the test: when a job is kept, when it leaves, and what
// the next sender on the same outbox does. Acknowledgements do not time out here. Does not verify kill -9
// (tests/contract/outbox_test.cpp).
#include <algorithm>
#include <memory>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"
#include "onced/sender.hpp"
#include "sender/outbox.hpp"
#include "support/faulty_environment.hpp"
#include "unit/sender/fake_worker.hpp"

namespace onced::testing {
namespace {

struct SenderScene {
  ScratchDirectory temp;
  FakeWorker worker;
  SystemClock clock;
  SystemRandom random;
  SilentLog log;
  SenderOptions options;
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  std::unique_ptr<Sender> sender; // last: its thread ends before what it uses

  SenderScene() {
    options.jobs_endpoint = worker.jobs_endpoint();
    options.replies_endpoint = worker.replies_endpoint();
    options.acknowledgement_timeout = std::chrono::hours(1);
    options.acknowledgement_timeout_max = std::chrono::hours(1);
    options.outbox = temp.path() / "outbox";
    options.environment = faulty_environment(faults);
  }

  Result<void> try_start() {
    auto started = Sender::start(options, clock, random, log);
    if (!started) return tl::unexpected(started.error());
    sender = std::move(*started);
    return {};
  }
  void start() {
    const auto started = try_start();
    if (!started) throw std::runtime_error(describe(started.error()));
  }
  void start_and_greet() {
    start();
    worker.hear_new_sender();
    worker.greet(boot_number(1));
  }
  std::vector<Sequence> submit(std::vector<Bytes> jobs) {
    const auto sequences = sender->submit(std::move(jobs), soon());
    if (!sequences) throw std::runtime_error(describe(sequences.error()));
    return *sequences;
  }
  Settled next() {
    auto settled = sender->next_settled(soon());
    if (!settled) throw std::runtime_error(describe(settled.error()));
    return std::move(*settled);
  }
  void settle(const FakeWorker::Arrived &job) {
    worker.reply({.sequence = job.sequence, .tag = job.tag, .outcome = Outcome::stored, .result = {}, .detail = {}});
  }
  // Waits, without being handed anything, until so many jobs are left.
  bool unsettled_becomes(std::size_t jobs) {
    const auto deadline = soon();
    while (sender->unsettled() != jobs) {
      if (now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  // What is in the outbox when no sender has it.
  std::uint64_t jobs_on_disk() {
    sender.reset();
    const auto outbox = sender::Outbox::open(options.outbox, SenderId{});
    if (!outbox) throw std::runtime_error(describe(outbox.error()));
    return (*outbox)->found().jobs;
  }
};

TEST_CASE("the next sender on an outbox goes on with the same id and sequences and tags and times") {
  SenderScene scene;
  scene.start_and_greet();
  scene.submit({"one", "two"});
  const auto first = scene.worker.take(2);
  scene.sender.reset();
  scene.start_and_greet();
  CHECK(scene.sender->unsettled() == 2);
  const auto second = scene.worker.take(2);
  for (std::size_t job = 0; job < 2; ++job) {
    CHECK(second[job].sender == first[job].sender);
    CHECK(second[job].sequence == first[job].sequence);
    CHECK(second[job].tag == first[job].tag);
    CHECK(second[job].issued_at == first[job].issued_at);
    CHECK(second[job].job == first[job].job);
    CHECK(second[job].attempt == 1); // attempts are those of a process
  }
  CHECK(scene.submit({"three"}).front() == Sequence{3});
}

TEST_CASE("a batch is kept by one log sync and is sent") {
  SenderScene scene;
  scene.start_and_greet();
  std::vector<Bytes> jobs;
  for (int job = 0; job < 500; ++job)
    jobs.push_back("job " + std::to_string(job));
  const auto before = scene.faults->calls(FaultAt::log_sync);
  const auto sequences = scene.submit(jobs);
  CHECK(scene.faults->calls(FaultAt::log_sync) == before + 1);
  REQUIRE(sequences.size() == 500);
  CHECK(sequences.front() == Sequence{1});
  CHECK(sequences.back() == Sequence{500});
  const auto arrived = scene.worker.take(500);
  CHECK(arrived.front().job == "job 0");
  CHECK(arrived.back().job == "job 499");
}

TEST_CASE("a job leaves the outbox when its outcome was handed out and not before") {
  SenderScene scene;
  scene.start_and_greet();
  scene.submit({"one", "two"});
  const auto arrived = scene.worker.take(2);
  scene.settle(arrived[0]);
  REQUIRE(scene.unsettled_becomes(1));
  CHECK(scene.sender->stats().resumed == 0);
  CHECK(scene.jobs_on_disk() == 2); // settled, and nobody was told

  scene.start_and_greet();
  const auto again = scene.worker.take(2);
  scene.settle(again[0]);
  REQUIRE(scene.unsettled_becomes(1));
  CHECK(scene.sender->stats().resumed == 2); // whatever has settled before anybody asked
  const Settled settled = scene.next();
  CHECK(settled.sequence == Sequence{1});
  CHECK(settled.job == "one");
  CHECK(scene.jobs_on_disk() == 1);
}

TEST_CASE("a job over the limits is settled without being kept") {
  SenderScene scene;
  scene.start_and_greet();
  const auto sequences = scene.submit({"one", Bytes(limits::job_bytes_max + 1, 'x'), "three"});
  CHECK(sequences == std::vector<Sequence>{Sequence{1}, Sequence{2}, Sequence{3}});
  const Settled settled = scene.next();
  CHECK(settled.sequence == Sequence{2});
  CHECK(settled.outcome == Outcome::invalid);
  CHECK(settled.detail == "too_large");
  CHECK(settled.attempts == 0);
  CHECK(scene.sender->unsettled() == 2);
  CHECK(scene.jobs_on_disk() == 2);
}

TEST_CASE("a full outbox makes submit wait until an outcome was dealt with") {
  SenderScene scene;
  scene.options.outbox_jobs_max = 2;
  scene.start_and_greet();
  scene.submit({"one", "two"});
  const auto full = scene.sender->submit(Bytes("three"), now());
  REQUIRE(!full.has_value());
  CHECK(full.error().code == ErrorCode::timed_out);
  CHECK(full.error().cause == "the outbox is full");
  scene.settle(scene.worker.take(2)[0]);
  CHECK(scene.next().sequence == Sequence{1});
  CHECK(!scene.sender->submit(Bytes("three"), now()).has_value()); // handed out, but who knows what became of it
  CHECK(!scene.sender->next_settled(now()).has_value());
  CHECK(scene.submit({"three"}).front() == Sequence{3});
}

TEST_CASE("an outbox that fails promises nothing and ends the sender until it is started again") {
  SenderScene scene;
  scene.start_and_greet();
  scene.submit({"one"});
  scene.faults->fail_from(FaultAt::log_sync, 1);
  const auto failed = scene.sender->submit({Bytes("two"), Bytes("three")}, soon());
  REQUIRE(!failed.has_value());
  CHECK(failed.error().code == ErrorCode::store_unavailable);
  scene.faults->clear();
  CHECK(scene.sender->submit(Bytes("four"), soon()).error().code == ErrorCode::store_unavailable);
  CHECK(scene.sender->next_settled(soon()).error().code == ErrorCode::store_unavailable);
  scene.sender.reset();
  scene.start_and_greet();
  const std::size_t found = scene.sender->unsettled();
  CHECK((found == 1 || found == 3));
  const Sequence next = scene.submit({"four"}).front();
  CHECK(number_of(next) == found + 1); // a sequence that was found is not used again
}

TEST_CASE("two senders cannot have one outbox") {
  SenderScene scene;
  scene.start();
  const auto second = Sender::start(scene.options, scene.clock, scene.random, scene.log);
  REQUIRE(!second.has_value());
  CHECK(second.error().code == ErrorCode::locked);
}

TEST_CASE("a sender id that is not the outbox's is refused") {
  SenderScene scene;
  scene.start();
  const SenderId id = scene.sender->id();
  scene.sender.reset();
  scene.options.sender_id = id;
  scene.start();
  scene.sender.reset();
  scene.options.sender_id->bytes[0] ^= 1U;
  const auto refused = scene.try_start();
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == ErrorCode::usage);
}

TEST_CASE("sends that the lab loses are counted and not sent") {
  SenderScene scene;
  scene.options.lab.loss_share = 1;
  scene.start_and_greet();
  scene.submit({"one", "two"});
  const auto deadline = soon();
  while (scene.sender->stats().lost < 2 && now() < deadline)
    std::this_thread::yield();
  CHECK(scene.sender->stats().lost == 2);
  CHECK(!scene.worker.has_jobs());
  CHECK(scene.sender->unsettled() == 2);
}

TEST_CASE("the first reply to each job is thrown away where the lab says so and the second settles it") {
  SenderScene scene;
  scene.options.lab.lose_first_replies = true;
  scene.start_and_greet();
  scene.submit({"one", "two"});
  const auto jobs = scene.worker.take(2);
  for (const auto &job : jobs)
    scene.settle(job);
  const auto deadline = soon();
  while (scene.sender->stats().lost_replies < 2 && now() < deadline)
    std::this_thread::yield();
  CHECK(scene.sender->stats().lost_replies == 2);
  CHECK(scene.sender->unsettled() == 2);
  scene.settle(jobs[1]);
  CHECK(scene.next().sequence == jobs[1].sequence);
  CHECK(scene.sender->stats().lost_replies == 2);
}

TEST_CASE("the lab's shuffle keeps every job and repeats with its seed") {
  std::vector<std::vector<std::uint64_t>> orders;
  for (const std::uint64_t seed : {1U, 1U, 2U}) {
    SenderScene scene;
    scene.options.lab = {.shuffle = true, .loss_share = 0, .seed = seed};
    scene.start();
    scene.submit(std::vector<Bytes>(100, "same job"));
    scene.worker.hear_new_sender();
    scene.worker.greet(boot_number(1));
    orders.emplace_back();
    for (const auto &job : scene.worker.take(100))
      orders.back().push_back(number_of(job.sequence));
  }
  CHECK(orders[0] == orders[1]);
  CHECK(orders[0] != orders[2]);
  CHECK(!std::is_sorted(orders[0].begin(), orders[0].end()));
  std::sort(orders[0].begin(), orders[0].end());
  CHECK(orders[0].front() == 1);
  CHECK(orders[0].back() == 100);
  CHECK(std::adjacent_find(orders[0].begin(), orders[0].end()) == orders[0].end());
}

TEST_CASE("the time from the last word of a lost worker to the next settled job is a recovery") {
  SenderScene scene;
  scene.start_and_greet();
  scene.submit({"one"});
  scene.worker.take(1);
  scene.worker.greet(boot_number(2));
  const auto again = scene.worker.take(1);
  scene.settle(again[0]);
  CHECK(scene.next().sequence == Sequence{1});
  const SenderStats stats = scene.sender->stats();
  CHECK(stats.new_boots == 1);
  CHECK(stats.recoveries.size() == 1);
  CHECK(stats.resends == 1);
}

} // namespace
} // namespace onced::testing
