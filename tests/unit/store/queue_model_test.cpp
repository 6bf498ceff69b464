// Long random histories of queued jobs against a model that knows what each answer must be: deliveries, receives, late
// and timely settlements, redrives, purges, resolutions, with caps that are met and reopenings between any two steps.
// Not here: threads (queue_races_test.cpp), crashes inside a step (queue_test.cpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/queue_harness.hpp"
#include "support/seeds.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

constexpr unsigned keys = 6;
constexpr std::uint64_t queue_jobs = 4;
constexpr std::uint64_t letters_max = 5;

struct ModelJob {
  std::optional<Phase> phase; // nothing: absent
  std::int64_t payload = 0;
  std::int64_t result = 0;
  QueueState state = QueueState::waiting; // this and the rest while it is pending, and kept when it fails
  bool effect_unknown = false;
  std::uint64_t receives = 0;
  std::uint64_t receives_total = 0;
  std::uint64_t redrives = 0;
  FencingToken token;
  std::vector<std::string> errors;

  [[nodiscard]] bool pending() const { return phase == Phase::pending; }
  [[nodiscard]] bool leased() const {
    return pending() && (state == QueueState::leased || state == QueueState::calling);
  }
};

class History {
public:
  explicit History(std::uint64_t seed) : random_(seed) {
    harness_.options.queue_jobs_max = queue_jobs;
    harness_.options.dead_letters_max = letters_max;
    harness_.reopen();
  }

  void take_step() {
    switch (pick(17)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return deliver();
    case 4:
    case 5:
    case 6:
      return receive();
    case 7:
      return give_back();
    case 8:
    case 9:
    case 10:
    case 11:
      return settle();
    case 12:
      return redrive();
    case 13:
      return purge();
    case 14:
      return resolve();
    case 15:
      return exhaust();
    default:
      harness_.reopen();
    }
  }

  void compare() {
    std::uint64_t results = 0;
    for (unsigned key = 0; key < keys; ++key) {
      CAPTURE(key);
      const ModelJob &job = jobs_.at(key);
      if (job.phase == Phase::committed) ++results;
      const auto operation = harness_.row(id_of(key), type_of(key));
      CHECK(operation.has_value() == job.phase.has_value());
      if (operation && job.phase) CHECK(operation->phase == *job.phase);
      const auto row = harness_.store->queue().find(key_of(key));
      REQUIRE(row.has_value());
      REQUIRE(row->has_value() == job.pending());
      if (job.pending()) compare_row(**row, job, key);
    }
    CHECK(harness_.counts().results == results);
    CHECK(harness_.counts().pending == pending());
    CHECK(harness_.counts().dead_letters == letters());
    harness_.check_sound();
  }

private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }
  static std::string_view type_of(unsigned key) { return key % 2 == 0 ? "slow" : "pay"; }
  static std::string id_of(unsigned key) { return "job-" + std::to_string(key); }
  static Bytes key_of(unsigned key) { return onced::testing::key_of(id_of(key), type_of(key)); }
  static Bytes bytes_of(unsigned key, std::int64_t payload) {
    return key % 2 == 0 ? slow_job(id_of(key), payload) : pay_job(id_of(key), payload);
  }
  [[nodiscard]] std::uint64_t pending() const {
    return static_cast<std::uint64_t>(
        std::count_if(jobs_.begin(), jobs_.end(), [](const ModelJob &job) { return job.pending(); }));
  }
  [[nodiscard]] std::uint64_t letters() const {
    const auto failed =
        std::count_if(jobs_.begin(), jobs_.end(), [](const ModelJob &job) { return job.phase == Phase::failed; });
    return static_cast<std::uint64_t>(failed) + conflicts_.size();
  }
  // Mostly the job's own token.
  FencingToken some_token(const ModelJob &job) {
    return pick(4) == 0 && !tokens_.empty() ? tokens_.at(pick(static_cast<unsigned>(tokens_.size()))) : job.token;
  }
  template <class Value> static void expect(const Value &value, const Value &expected) { CHECK(value == expected); }

  void deliver() {
    const unsigned key = pick(keys);
    const std::int64_t payload = pick(5) == 0 ? 2 : 1;
    ModelJob &job = jobs_.at(key);
    Outcome expected = Outcome::accepted;
    if (!job.phase) {
      expected = pending() == queue_jobs ? Outcome::busy : Outcome::accepted;
      if (expected == Outcome::accepted) job = {.phase = Phase::pending, .payload = payload, .token = {}, .errors = {}};
    } else if (job.payload != payload) {
      const bool known = conflicts_.contains({key, payload});
      expected = known || letters() < letters_max ? Outcome::conflict : Outcome::busy;
      if (expected == Outcome::conflict) conflicts_.try_emplace({key, payload}, 0);
    } else if (job.phase == Phase::committed) {
      expected = Outcome::duplicate;
    } else if (job.phase == Phase::failed) {
      expected = Outcome::failed;
    }
    const Settlement settled = harness_.commit_one(bytes_of(key, payload));
    CHECK(settled.outcome == expected);
    if (expected == Outcome::duplicate) CHECK(settled.result == integer_result(job.result));
  }

  void receive() {
    const unsigned key = pick(keys);
    ModelJob &job = jobs_.at(key);
    const FencingToken token = pick(5) == 0 ? some_token(job) : harness_.next_token();
    tokens_.push_back(token);
    const Received received = harness_.receive_key(key_of(key), token, type_of(key));
    if (!job.pending()) return expect(received.answer, Received::Answer::gone);
    if (job.state == QueueState::held) return expect(received.answer, Received::Answer::held);
    if (token <= job.token) return expect(received.answer, Received::Answer::stale);
    CHECK(received.answer == Received::Answer::job);
    if (job.state == QueueState::calling) job.effect_unknown = true;
    job.state = key % 2 == 0 ? QueueState::leased : QueueState::calling;
    job.token = token;
    ++job.receives;
    ++job.receives_total;
    CHECK(received.row.receives == job.receives);
    CHECK(received.job.operation_id == id_of(key));
  }

  void give_back() {
    const unsigned key = pick(keys);
    ModelJob &job = jobs_.at(key);
    const FencingToken token = some_token(job);
    const QueueSettled settled = harness_.store->queue().give_back(key_of(key), token).value();
    if (!job.leased() || token != job.token) return expect(settled, QueueSettled::stale);
    CHECK(settled == QueueSettled::waiting);
    job.state = QueueState::waiting;
    --job.receives;
    --job.receives_total;
  }

  void settle() {
    const unsigned key = pick(keys);
    ModelJob &job = jobs_.at(key);
    const FencingToken token = some_token(job);
    const QueueEnding ending{.verdict = static_cast<QueueVerdict>(pick(5)),
                             .result = integer_result(++errors_),
                             .error = "error " + std::to_string(errors_),
                             .effect = static_cast<QueueEffect>(pick(3))};
    const QueueSettled settled = harness_.settle_key(key_of(key), token, ending);
    if (!job.leased() || token != job.token) return expect(settled, QueueSettled::stale);
    const QueueVerdict verdict = ending.verdict;
    if (verdict == QueueVerdict::refused || verdict == QueueVerdict::exhausted) return fail(job, ending, settled);
    if (verdict == QueueVerdict::done) {
      job.phase = Phase::committed;
      job.result = errors_;
      return expect(settled, QueueSettled::committed);
    }
    learn(job, ending);
    job.state = verdict == QueueVerdict::unknown ? QueueState::held : QueueState::waiting;
    CHECK(settled == (verdict == QueueVerdict::unknown ? QueueSettled::held : QueueSettled::waiting));
  }

  void exhaust() {
    const unsigned key = pick(keys);
    ModelJob &job = jobs_.at(key);
    const QueueEnding ending{.error = "error " + std::to_string(++errors_)};
    const QueueSettled settled = harness_.store->queue().exhaust(key_of(key), ending.error).value();
    if (!job.pending() || job.state != QueueState::waiting) return expect(settled, QueueSettled::stale);
    fail(job, ending, settled);
  }

  void fail(ModelJob &job, const QueueEnding &ending, QueueSettled settled) {
    if (letters() == letters_max) return expect(settled, QueueSettled::busy);
    learn(job, ending);
    job.phase = Phase::failed;
    CHECK(settled == QueueSettled::failed);
  }

  static void learn(ModelJob &job, const QueueEnding &ending) {
    job.errors.push_back(ending.error);
    if (job.errors.size() > 5) job.errors.erase(job.errors.begin());
    if (ending.effect == QueueEffect::absent) job.effect_unknown = false;
    if (ending.effect == QueueEffect::unknown || ending.verdict == QueueVerdict::unknown) job.effect_unknown = true;
  }

  // A dead letter that there is, of a failed job or of a conflict; or nothing.
  struct Picked {
    DeadLetterId id;
    unsigned key = 0;
    std::int64_t payload = 0;
    bool conflict = false;
  };
  std::optional<Picked> pick_letter() {
    const auto all = harness_.dead_letters();
    CHECK(all.size() == letters());
    if (all.empty()) return std::nullopt;
    const DeadLetter &letter = all.at(pick(static_cast<unsigned>(all.size())));
    Picked picked{.id = letter.id};
    picked.key = static_cast<unsigned>(std::stoul(letter.operation_id.substr(4)));
    picked.payload = letter.bytes == bytes_of(picked.key, 1) ? 1 : 2;
    picked.conflict = letter.reason == Outcome::conflict;
    const ModelJob &job = jobs_.at(picked.key);
    if (picked.conflict) {
      REQUIRE(conflicts_.contains({picked.key, picked.payload}));
      CHECK(letter.redrives == conflicts_.at({picked.key, picked.payload}));
    } else {
      CHECK(letter.reason == Outcome::failed);
      CHECK(job.phase == Phase::failed);
      CHECK(job.payload == picked.payload);
      CHECK(letter.receives == job.receives_total);
      CHECK(letter.redrives == job.redrives);
      CHECK(letter.errors == job.errors);
      CHECK(letter.effect_unknown == job.effect_unknown);
    }
    return picked;
  }

  void redrive() {
    const auto picked = pick_letter();
    if (!picked) return;
    ModelJob &job = jobs_.at(picked->key);
    const Redriven redriven = harness_.redrive(picked->id);
    const Outcome outcome = redriven.settlement.outcome;
    const bool queues = !picked->conflict || !job.phase;
    if (queues && pending() == queue_jobs) return expect(outcome, Outcome::busy);
    if (!picked->conflict) {
      CHECK(outcome == Outcome::accepted);
      job.phase = Phase::pending;
      job.state = QueueState::waiting;
      job.receives = 0;
      job.token = {};
      ++job.redrives;
      return;
    }
    std::uint64_t &redrives = conflicts_.at({picked->key, picked->payload});
    if (job.phase && job.payload != picked->payload) {
      ++redrives;
      return expect(outcome, Outcome::conflict);
    }
    if (!job.phase) {
      job = {.phase = Phase::pending, .payload = picked->payload, .redrives = redrives + 1, .token = {}, .errors = {}};
      CHECK(outcome == Outcome::accepted);
    } else if (job.phase == Phase::failed) {
      job.redrives += redrives + 1; // it becomes one with the dead letter of the job
      CHECK(outcome == Outcome::failed);
    } else {
      CHECK(outcome == (job.phase == Phase::committed ? Outcome::duplicate : Outcome::accepted));
    }
    conflicts_.erase({picked->key, picked->payload});
  }

  void purge() {
    const auto picked = pick_letter();
    if (!picked) return;
    REQUIRE(harness_.store->purge(picked->id, kim).has_value());
    if (picked->conflict) {
      conflicts_.erase({picked->key, picked->payload});
    } else {
      jobs_.at(picked->key) = {};
    }
  }

  void resolve() {
    const unsigned key = pick(keys);
    ModelJob &job = jobs_.at(key);
    const bool applied = pick(2) == 0;
    const auto result = applied ? std::optional(integer_result(++errors_)) : std::nullopt;
    const auto resolved = harness_.store->resolve({key_of(key)}, result, kim);
    if (!job.pending() || job.state != QueueState::held) {
      REQUIRE(!resolved.has_value());
      return expect(resolved.error().code, ErrorCode::not_found);
    }
    CHECK(resolved.has_value());
    if (applied) {
      job.phase = Phase::committed;
      job.result = errors_;
    } else {
      job.state = QueueState::waiting;
      job.effect_unknown = false;
      job.receives = 0;
    }
  }

  static void compare_row(const QueueRow &row, const ModelJob &job, unsigned key) {
    CHECK(row.bytes == bytes_of(key, job.payload));
    CHECK(row.state == job.state);
    CHECK(row.effect_unknown == job.effect_unknown);
    CHECK(row.receives == job.receives);
    CHECK(row.receives_total == job.receives_total);
    CHECK(row.redrives == job.redrives);
    CHECK(row.token == job.token);
    CHECK(row.errors == job.errors);
  }

  QueueHarness harness_;
  std::mt19937_64 random_;
  std::array<ModelJob, keys> jobs_;
  std::map<std::pair<unsigned, std::int64_t>, std::uint64_t> conflicts_; // of a key and payload; its redrives
  std::vector<FencingToken> tokens_;
  std::int64_t errors_ = 0;
};

} // namespace

TEST_CASE("random histories of queued jobs answer and write what a model says") {
  constexpr unsigned histories = 4;
  constexpr unsigned steps = 300;
  for (const Seed seed : seeds(histories)) {
    CAPTURE(seed);
    History history(seed.number);
    for (unsigned step = 0; step < steps; ++step) {
      CAPTURE(step);
      history.take_step();
      if (step % 10 == 9) history.compare();
    }
  }
}
