// Messages of a store's results reach the stores of other workers, each as one effect, whatever is lost, away, refused
// or started again in between. The sockets of a destination are real, and a real store decides what is said of each
// job. Not here: what is written with a result (unit/store/relay_test.cpp), kill -9 of either process, and how a sender
// resends (unit/sender).
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "runner/relay.hpp"
#include "support/faulty_environment.hpp"
#include "support/relay_harness.hpp"
#include "unit/sender/fake_worker.hpp"

using namespace onced;
using namespace onced::runner;
using namespace onced::testing;

namespace {

// False when it is not so within the patience of these tests.
bool in_time(const std::function<bool()> &is_so) {
  const auto deadline = soon();
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A worker that messages are sent on to: sockets with a store behind them, on a thread of its own.
class NextWorker {
public:
  enum class Manner : std::uint8_t { answers, silent, unsupported };

  explicit NextWorker(Manner manner = Manner::answers) : manner_(manner) {
    store_.open();
    thread_ = std::thread([this] { run(); });
  }
  ~NextWorker() {
    stopping_ = true;
    thread_.join();
  }
  NextWorker(const NextWorker &) = delete;
  NextWorker &operator=(const NextWorker &) = delete;

  [[nodiscard]] RelayTarget target(std::string name) const {
    return {.name = std::move(name),
            .jobs_endpoint = sockets_.jobs_endpoint(),
            .replies_endpoint = sockets_.replies_endpoint()};
  }
  // Before it answers, nothing is sent to it.
  void behave(Manner manner) { manner_ = manner; }
  // So many messages of jobs are committed and not answered, from now on.
  void lose_replies(unsigned messages) { replies_to_lose_ = messages; }
  [[nodiscard]] std::uint64_t stored() const { return stored_; }
  [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

private:
  void run() {
    while (!stopping_) {
      const bool heard = manner_ != Manner::silent && sockets_.has_hello();
      if (heard) {
        sockets_.hear_hello();
        say(manner_ == Manner::answers ? wire::encode_greeting(boot_number(1), Durability::fsync)
                                       : wire::encode_unsupported());
      }
      if (sockets_.has_jobs()) {
        settle(sockets_.take_message());
      } else if (!heard) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  void settle(const std::vector<FakeWorker::Arrived> &arrived) {
    Batch batch;
    for (const auto &job : arrived)
      batch.add(job.job);
    const auto settled = store_.commit(batch);
    wire::RepliesEncoder replies(boot_number(1), Durability::fsync);
    for (std::size_t at = 0; at < settled.size(); ++at) {
      if (settled[at].outcome == Outcome::stored) ++stored_;
      if (settled[at].outcome == Outcome::duplicate) ++duplicates_;
      if (!traits_of(settled[at].outcome).success) ++refused_;
      replies.add({.sequence = arrived[at].sequence,
                   .tag = arrived[at].tag,
                   .outcome = settled[at].outcome,
                   .result = settled[at].result,
                   .detail = settled[at].detail});
    }
    if (replies_to_lose_ > 0) {
      --replies_to_lose_;
      return;
    }
    for (const Bytes &frame : replies.take())
      say(frame);
  }

  // A sender that has ended meanwhile is not told.
  void say(BytesView frame) {
    try {
      sockets_.say(frame);
    } catch (const zmq::error_t &error) {
      if (error.num() != EHOSTUNREACH) throw;
    }
  }

  FakeWorker sockets_;
  StoreHarness store_;
  std::atomic<Manner> manner_;
  std::atomic<unsigned> replies_to_lose_{0};
  std::atomic<std::uint64_t> stored_{0};
  std::atomic<std::uint64_t> duplicates_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Remembers the names of events.
class NameLog final : public EventLog {
public:
  void write(const Event &event) noexcept override {
    const std::scoped_lock lock(mutex_);
    names_.emplace_back(event.name);
  }
  [[nodiscard]] std::ptrdiff_t count(std::string_view name) const {
    const std::scoped_lock lock(mutex_);
    return std::count(names_.begin(), names_.end(), name);
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
};

// The first worker of a chain: a store with its keeper and a relay, which may be stopped and started again.
class FirstWorker final : public StoreObserver {
public:
  FirstWorker() {
    harness.close();
    harness.options.observer = this;
    harness.options.environment = faulty_environment(faults);
  }
  ~FirstWorker() override { stop(); }
  FirstWorker(const FirstWorker &) = delete;
  FirstWorker &operator=(const FirstWorker &) = delete;

  void queued(BytesView, std::string_view, WallTime) override {}
  void relayed() override { relay_->wake(); }

  void start(const std::vector<RelayTarget> &targets) {
    harness.close();
    keeper_ = std::make_unique<store::StoreKeeper>(
        harness.options, clock_, random_, log, [] {}, [](const Error &) {});
    relay_ = std::make_unique<Relay>(targets, *keeper_, clock_, random_, log, counters);
    REQUIRE(keeper_->open().has_value());
    keeper_thread_ = std::thread([this] { keeper_->run(); });
    relay_thread_ = std::thread([this] { relay_->run(); });
  }
  // Then the harness may open the store.
  void stop() {
    if (!relay_) return;
    relay_->stop();
    relay_thread_.join();
    keeper_->stop();
    keeper_thread_.join();
    relay_.reset();
    keeper_->close();
  }

  [[nodiscard]] Store &store() { return *keeper_->lease(); }
  void wake() { relay_->wake(); }
  [[nodiscard]] std::uint64_t openings() const { return keeper_->state().openings; }
  // As many `split` jobs in one batch, each of which sends the harness's messages on.
  void commit(unsigned jobs) {
    Batch batch;
    for (unsigned job = 0; job < jobs; ++job)
      batch.add(split_job("job-" + std::to_string(++last_job_)));
    const auto settled = store().commit(batch.view(), harness.handlers);
    REQUIRE(settled.has_value());
    CHECK(outcomes_of(*settled) == std::vector<Outcome>(jobs, Outcome::stored));
  }
  [[nodiscard]] std::size_t dead_letters() { return store().dead_letters(100, std::nullopt)->size(); }

  // What the store holds once all is stopped.
  Counts counts_at_rest() {
    stop();
    harness.open();
    harness.check_sound();
    const Counts counts = harness.counts();
    harness.close();
    return counts;
  }

  RelayHarness harness;
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  RelayCounters counters;
  NameLog log;

private:
  SystemClock clock_;
  SeededRandom random_{3};
  unsigned last_job_ = 0;
  std::unique_ptr<store::StoreKeeper> keeper_;
  std::unique_ptr<Relay> relay_;
  std::thread keeper_thread_;
  std::thread relay_thread_;
};

RelayMessage unheard_of_message() {
  return {.to = "next", .job = message_bytes(1, "unheard-of")}; // which `NextWorker` refuses for good
}

} // namespace

TEST_CASE("messages reach their destination once each and leave the store") {
  NextWorker next;
  FirstWorker first;
  first.harness.messages = {message_to("next", 1), message_to("next", 2)};
  first.start({next.target("next")});
  for (int batch = 0; batch < 5; ++batch)
    first.commit(100);
  CHECK(in_time([&] { return first.counters.relayed == 1000; }));
  CHECK(next.stored() == 1000);
  CHECK(first.counters.relay_refused == 0);
  const Counts counts = first.counts_at_rest();
  CHECK(counts.relayed == 0);
  CHECK(counts.dead_letters == 0);
  CHECK(counts.results == 500);
}

TEST_CASE("messages that were there before the relay are sent on when it starts") {
  NextWorker next;
  FirstWorker first;
  first.start({});
  first.commit(3);
  first.stop();
  first.start({next.target("next")});
  CHECK(in_time([&] { return first.counters.relayed == 3; }));
  CHECK(first.counts_at_rest().relayed == 0);
}

TEST_CASE("lost replies make duplicates there and no second effect") {
  NextWorker next;
  next.lose_replies(2);
  FirstWorker first;
  first.start({next.target("next")});
  first.commit(50);
  CHECK(in_time([&] { return first.counters.relayed == 50; }));
  CHECK(next.stored() == 50);
  CHECK(next.duplicates() > 0);
  CHECK(first.counts_at_rest().relayed == 0);
}

TEST_CASE("a relay that ends between the effect and its reply sends again after its start and there is one effect") {
  NextWorker next;
  next.lose_replies(1'000'000);
  FirstWorker first;
  first.start({next.target("next")});
  first.commit(50);
  REQUIRE(in_time([&] { return next.stored() == 50; }));
  CHECK(first.counts_at_rest().relayed == 50);
  next.lose_replies(0);
  first.start({next.target("next")});
  CHECK(in_time([&] { return first.counters.relayed == 50; }));
  CHECK(next.stored() == 50);
  CHECK(next.duplicates() >= 50);
  CHECK(first.counts_at_rest().relayed == 0);
}

TEST_CASE("a destination that is away holds up no other and all it missed arrives when it is back") {
  NextWorker near;
  NextWorker away(NextWorker::Manner::silent);
  FirstWorker first;
  first.start({away.target("away"), near.target("near")});
  // More than is kept in memory for one destination.
  first.harness.messages.assign(limits::relay_messages_max, message_to("away", 1));
  constexpr unsigned jobs = limits::relay_jobs_in_memory / limits::relay_messages_max + 64;
  constexpr std::uint64_t messages = jobs * limits::relay_messages_max;
  first.commit(jobs);
  first.harness.messages = {message_to("near", 1)};
  first.commit(200);
  CHECK(in_time([&] { return near.stored() == 200 && first.counters.relayed == 200; }));
  CHECK(away.stored() == 0);
  CHECK(first.store().relay().depth().rows == messages);
  away.behave(NextWorker::Manner::answers);
  CHECK(in_time([&] { return first.counters.relayed == 200 + messages; }));
  CHECK(away.stored() == messages);
  CHECK(first.counts_at_rest().relayed == 0);
}

TEST_CASE("messages that come while others are outstanding are sent on too") {
  NextWorker next(NextWorker::Manner::silent);
  FirstWorker first;
  first.start({next.target("next")});
  for (int batch = 0; batch < 40; ++batch)
    first.commit(20);
  next.behave(NextWorker::Manner::answers);
  for (int batch = 0; batch < 40; ++batch)
    first.commit(20);
  CHECK(in_time([&] { return first.counters.relayed == 1600; }));
  CHECK(next.stored() == 1600);
}

TEST_CASE("a message that is refused for good is a dead letter here and a redrive sends it on again") {
  NextWorker next;
  FirstWorker first;
  first.harness.messages = {unheard_of_message(), message_to("next", 1)};
  first.start({next.target("next")});
  first.commit(1);
  REQUIRE(in_time([&] { return first.counters.relay_refused == 1 && first.counters.relayed == 1; }));
  DeadLetter letter = first.store().dead_letters(10, std::nullopt)->at(0);
  CHECK(letter.reason == Outcome::invalid);
  CHECK(letter.detail == "sent on to next, which said: unknown type \"unheard-of\"");
  CHECK(first.store().redrive(letter.id, first.harness.handlers, kim)->settlement.outcome == Outcome::accepted);
  REQUIRE(in_time([&] { return first.counters.relay_refused == 2; }));
  CHECK(next.refused() == 2);
  letter = first.store().dead_letters(10, std::nullopt)->at(0);
  CHECK(letter.redrives == 1);
  const Counts counts = first.counts_at_rest();
  CHECK(counts.relayed == 0);
  CHECK(counts.dead_letters == 1);
}

TEST_CASE("where dead letters have no room a refused message stays and goes once there is some") {
  NextWorker next;
  FirstWorker first;
  first.harness.options.dead_letters_max = 1;
  first.harness.messages = {unheard_of_message(), unheard_of_message(), message_to("next", 1)};
  first.start({next.target("next")});
  first.commit(1);
  REQUIRE(in_time([&] { return first.log.count("relay.no_room_for_dead_letters") == 1; }));
  CHECK(first.counters.relay_refused == 1);
  CHECK(first.store().relay().depth().rows == 1);
  const std::uint64_t told = next.refused();
  for (int again = 0; again < 20; ++again)
    first.wake();
  REQUIRE(first.store().purge(first.store().dead_letters(10, std::nullopt)->at(0).id, kim).has_value());
  first.wake();
  CHECK(in_time([&] { return first.counters.relay_refused == 2; }));
  CHECK(next.refused() == told); // it was not asked again
  CHECK(first.log.count("relay.no_room_for_dead_letters") == 1);
  CHECK(first.counts_at_rest().relayed == 0);
}

TEST_CASE("a message to a destination that is not configured stays and is told once") {
  NextWorker next;
  FirstWorker first;
  first.harness.messages = {message_to("nowhere", 1), message_to("next", 2)};
  first.start({next.target("next")});
  first.commit(10);
  first.commit(10);
  CHECK(in_time([&] { return first.counters.relayed == 20; }));
  CHECK(in_time([&] { return first.counters.relay_unknown_destinations == 1; }));
  CHECK(first.log.count("relay.unknown_destination") == 1);
  CHECK(first.counts_at_rest().relayed == 20);
  first.start({next.target("nowhere")}); // by now it is
  CHECK(in_time([&] { return first.counters.relayed == 40; }));
  CHECK(in_time([&] { return first.counters.relay_unknown_destinations == 0; }));
  CHECK(first.counts_at_rest().relayed == 0);
}

TEST_CASE("a store that fails at a removal is opened again and every message leaves it") {
  for (const FaultAt fault : {FaultAt::log_append, FaultAt::log_sync}) {
    NextWorker next(NextWorker::Manner::silent);
    FirstWorker first;
    first.start({next.target("next")});
    first.commit(30);
    first.faults->fail_from(fault, 1);
    next.behave(NextWorker::Manner::answers);
    REQUIRE(in_time([&] { return first.log.count("store.unavailable") == 1; }));
    first.faults->clear();
    CHECK(in_time([&] { return first.counters.relayed == 30; }));
    CHECK(first.openings() > 1);
    first.commit(5);
    CHECK(in_time([&] { return first.counters.relayed == 35; }));
    CHECK(next.stored() == 35);
    CHECK(first.counts_at_rest().relayed == 0);
  }
}

TEST_CASE("a destination of another protocol is told and tried again and harms no other") {
  NextWorker other(NextWorker::Manner::unsupported);
  NextWorker next;
  FirstWorker first;
  first.harness.messages = {message_to("other", 1), message_to("next", 1)};
  first.start({other.target("other"), next.target("next")});
  first.commit(10);
  CHECK(in_time([&] { return first.counters.relayed == 10; }));
  CHECK(in_time([&] { return first.log.count("relay.sender_failed") == 1; }));
  other.behave(NextWorker::Manner::answers);
  CHECK(in_time([&] { return first.counters.relayed == 20; }));
  CHECK(other.stored() == 10);
  CHECK(first.counts_at_rest().relayed == 0);
}

TEST_CASE("an endpoint that is none is told and its messages stay") {
  FirstWorker first;
  first.start({{.name = "next", .jobs_endpoint = "nonsense", .replies_endpoint = "nonsense"}});
  first.commit(1);
  CHECK(in_time([&] { return first.log.count("relay.sender_failed") == 1; }));
  CHECK(first.counts_at_rest().relayed == 1);
}

TEST_CASE("only names that can be told apart are destinations") {
  const auto code = [](const std::vector<std::string> &names) {
    std::vector<RelayTarget> targets;
    for (const std::string &name : names)
      targets.push_back({.name = name, .jobs_endpoint = {}, .replies_endpoint = {}});
    const auto checked = check_relays(targets);
    return checked ? std::string("fit") : checked.error().concerns + ": " + checked.error().cause;
  };
  CHECK(code({}) == "fit");
  CHECK(code({"a", "b", std::string(limits::relay_name_bytes_max, 'n')}) == "fit");
  CHECK(code({"a", "b", "a"}) == "relay \"a\": it is there twice");
  CHECK(code({""}) == "relay \"\": its name is not 1 to 64 bytes of UTF-8");
  CHECK(code({"\xFF"}) == "relay \"\xEF\xBF\xBD\": its name is not 1 to 64 bytes of UTF-8");
  std::vector<std::string> many;
  for (std::size_t at = 0; at <= limits::relay_targets_max; ++at)
    many.push_back(std::to_string(at));
  CHECK(code(many) == "the relays: there are 17");
}
