// Verifies the leases against a reference model that is simple enough to be seen right, through long random histories
// of everything that a worker does, restarts and late callers included: never two leases of one job, tokens that only
// grow, stale calls that change nothing, no more receives than allowed, each type's concurrency and places, turns among
// types, and that `next_due` is when something happens. A failure shows its seed, which repeats it. Not verified here:
// several threads, and the store.
#include "runner/leases.hpp"
#include "support/seeds.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using onced::MonotonicTime;
using onced::runner::FencingToken;
using onced::runner::LeaseOptions;
using onced::runner::Leases;
using onced::testing::Seed;
using onced::testing::seeds;
using Added = Leases::Added;
using Obstacle = Leases::Obstacle;

constexpr std::array<std::string_view, 3> type_names{"narrow", "small", "wide"};

std::vector<LeaseOptions> three_types() {
  return {{"narrow", 1, 5s, 1, 1s, 8s, 4}, {"small", 2, 10s, 3, 100ms, 2s, 2}, {"wide", 5, 20s, 5, 2s, 60s, 30}};
}

// A time that jitter leaves open: not before `from`, and by `to` at the latest.
struct TimeRange {
  MonotonicTime from;
  MonotonicTime to;
};

enum class Where : std::uint8_t { store, waiting, starting, running, ended };

struct ModelJob {
  std::string key;
  std::size_t type = 0;
  Where where = Where::store;
  std::uint32_t receives = 0; // as the store has it
  std::uint32_t runs = 0;     // of this budget, counted here
  TimeRange due{};
  FencingToken token{};
  MonotonicTime expiry{};
  bool answered = false; // it runs no more, and cannot expire

  [[nodiscard]] bool may_expire() const { return where == Where::running && !answered; }
  [[nodiscard]] bool is_leased() const { return where == Where::starting || where == Where::running; }
};

struct ModelType {
  LeaseOptions options;
  TimeRange paused_until{};
  std::uint32_t failed_starts = 0;
  bool more_in_store = false;
};

class History {
public:
  explicit History(std::uint64_t seed) : random_(seed) {
    for (const LeaseOptions &options : three_types())
      types_.push_back({.options = options});
    restart();
  }

  void step();
  void finish();

private:
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_.next() % bound; }
  [[nodiscard]] std::size_t count(std::size_t type, Where where) const;
  [[nodiscard]] std::size_t in_memory(std::size_t type) const;
  [[nodiscard]] std::size_t leased(std::size_t type) const;
  [[nodiscard]] std::optional<TimeRange> ready(std::size_t type) const;
  [[nodiscard]] TimeRange after_backoff(const LeaseOptions &options, std::uint32_t attempt) const;
  [[nodiscard]] bool is_certain(const TimeRange &moment) const { return moment.to <= now_ || now_ < moment.from; }
  [[nodiscard]] ModelJob *holder_of(const FencingToken &token);
  [[nodiscard]] FencingToken some_token();

  void restart();
  void offer(ModelJob &job);
  void new_job();
  void redrive();
  void refill();
  void take(std::size_t type);
  void take_any();
  void start();
  void give_back();
  void heartbeat();
  void answer();
  void forget();
  void retry();
  void pass_time();
  void expire();
  void check_all() const;

  onced::SeededRandom random_;
  MonotonicTime now_{1000h};
  std::uint64_t boot_ = 0;
  std::unique_ptr<Leases> leases_;
  std::vector<ModelType> types_;
  std::vector<ModelJob> jobs_;
  std::vector<FencingToken> tokens_; // all that were ever given
};

std::size_t History::count(std::size_t type, Where where) const {
  const auto counted = std::count_if(jobs_.begin(), jobs_.end(),
                                     [&](const ModelJob &job) { return job.type == type && job.where == where; });
  return static_cast<std::size_t>(counted);
}

std::size_t History::leased(std::size_t type) const {
  return count(type, Where::starting) + count(type, Where::running);
}

std::size_t History::in_memory(std::size_t type) const {
  return count(type, Where::waiting) + leased(type);
}

// When a job of the type may be taken; nothing where none can be.
std::optional<TimeRange> History::ready(std::size_t type) const {
  if (leased(type) >= types_[type].options.concurrency) return std::nullopt;
  std::optional<TimeRange> first;
  for (const ModelJob &job : jobs_) {
    if (job.type != type || job.where != Where::waiting) continue;
    if (!first) first = job.due;
    first = TimeRange{std::min(first->from, job.due.from), std::min(first->to, job.due.to)};
  }
  if (!first) return std::nullopt;
  const TimeRange paused = types_[type].paused_until;
  return TimeRange{std::max(first->from, paused.from), std::max(first->to, paused.to)};
}

TimeRange History::after_backoff(const LeaseOptions &options, std::uint32_t attempt) const {
  auto longest = options.backoff;
  for (std::uint32_t round = 1; round < attempt; ++round)
    longest = std::min(2 * longest, options.backoff_max);
  return {now_ + longest / 2, now_ + longest};
}

ModelJob *History::holder_of(const FencingToken &token) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const ModelJob &job) { return job.is_leased() && job.token == token; });
  return found == jobs_.end() ? nullptr : &*found;
}

// A live one mostly; else one from the past, or one that was never given.
FencingToken History::some_token() {
  std::vector<FencingToken> live;
  for (const ModelJob &job : jobs_) {
    if (job.is_leased()) live.push_back(job.token);
  }
  const auto chance = below(10);
  if (!live.empty() && chance < 7) return live[below(live.size())];
  if (!tokens_.empty() && chance < 9) return tokens_[below(tokens_.size())];
  return {boot_ + below(2), tokens_.size() + 1000};
}

// The process ended, whatever was under way; the store has everything, and the receives that were written.
void History::restart() {
  if (leases_) {
    leases_->drain();
    for (const std::string_view name : type_names)
      CHECK_FALSE(leases_->take(name, now_).has_value());
  }
  leases_ = std::make_unique<Leases>(three_types(), ++boot_, random_);
  for (ModelType &type : types_)
    type = {.options = type.options};
  for (ModelJob &job : jobs_) {
    if (job.where != Where::ended) job.where = Where::store;
  }
  for (ModelJob &job : jobs_) {
    if (job.where == Where::store) offer(job);
  }
}

void History::offer(ModelJob &job) {
  ModelType &type = types_[job.type];
  const Added added = leases_->add(job.key, type_names[job.type], job.receives, now_, now_);
  if (job.where != Where::store) {
    CHECK(added == Added::known);
    return;
  }
  if (job.receives >= type.options.max_receive_count) {
    CHECK(added == Added::exhausted);
    job.where = Where::ended;
    return;
  }
  if (in_memory(job.type) >= type.options.jobs_max) type.more_in_store = true;
  CHECK(added == (type.more_in_store ? Added::full : Added::waiting));
  if (type.more_in_store) return;
  job.where = Where::waiting;
  job.due = {now_, now_};
}

void History::new_job() {
  jobs_.push_back({.key = "job " + std::to_string(jobs_.size()), .type = below(type_names.size())});
  offer(jobs_.back());
  CHECK(leases_->add("no such handler", "unknown", 0, now_, now_) == Added::unhandled);
}

// Some job again: one that has ended begins a new budget; another changes nothing, unless it gets a place.
void History::redrive() {
  if (jobs_.empty()) return;
  ModelJob &job = jobs_[below(jobs_.size())];
  if (job.where == Where::ended) {
    job.where = Where::store;
    job.receives = 0;
    job.runs = 0;
  }
  offer(job);
}

void History::refill() {
  const auto names = leases_->begin_refill();
  std::vector<std::string_view> expected;
  for (std::size_t type = 0; type < types_.size(); ++type) {
    if (!types_[type].more_in_store || in_memory(type) > types_[type].options.jobs_max / 2) continue;
    types_[type].more_in_store = false;
    expected.push_back(type_names[type]);
  }
  CHECK(names == expected);
  for (ModelJob &job : jobs_) {
    const bool wanted = std::find(names.begin(), names.end(), type_names[job.type]) != names.end();
    if (wanted && job.where != Where::ended) offer(job);
  }
}

void History::take(std::size_t of_type) {
  const auto ready_at = ready(of_type);
  const auto taken = leases_->take(type_names[of_type], now_);
  if (!taken) {
    CHECK((!ready_at || ready_at->to > now_));
    return;
  }
  REQUIRE(ready_at.has_value());
  CHECK(ready_at->from <= now_);
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const ModelJob &known) { return known.key == taken->key; });
  REQUIRE(found != jobs_.end());
  ModelJob &job = *found;
  const ModelType &type = types_[job.type];
  REQUIRE(job.where == Where::waiting); // no second lease
  CHECK(job.type == of_type);
  CHECK(taken->type == type_names[of_type]);
  CHECK(leased(job.type) < type.options.concurrency);
  CHECK(std::max(job.due.from, type.paused_until.from) <= now_);
  CHECK(taken->receives == job.receives + 1);
  CHECK(taken->receives <= type.options.max_receive_count);
  if (!tokens_.empty()) CHECK(taken->token > tokens_.back());
  tokens_.push_back(taken->token);
  job.token = taken->token;
  job.receives = taken->receives;
  job.where = Where::starting;
}

// One of each type, where there is one.
void History::take_any() {
  for (std::size_t type = 0; type < types_.size(); ++type)
    take(type);
}

void History::start() {
  const FencingToken token = some_token();
  ModelJob *const job = holder_of(token);
  const bool starts = job != nullptr && job->where == Where::starting;
  CHECK(leases_->started(token, now_) == starts);
  if (!starts) return;
  ModelType &type = types_[job->type];
  type.failed_starts = 0;
  job->where = Where::running;
  job->answered = false;
  job->expiry = now_ + type.options.visibility_timeout;
  CHECK(++job->runs <= type.options.max_receive_count);
}

void History::give_back() {
  const FencingToken token = some_token();
  ModelJob *const job = holder_of(token);
  const bool starts = job != nullptr && job->where == Where::starting;
  // Where only the jitter knows whether the last pause of the type is over, there is nothing to expect of another.
  const bool pauses = starts && is_certain(types_[job->type].paused_until) && below(2) == 0;
  CHECK(leases_->give_back(token, pauses ? Obstacle::type : Obstacle::job, now_) == starts);
  if (!starts) return;
  ModelType &type = types_[job->type];
  job->where = Where::waiting;
  --job->receives;
  if (!pauses) {
    job->due = after_backoff(type.options, 1);
  } else if (type.paused_until.to <= now_) {
    type.paused_until = after_backoff(type.options, ++type.failed_starts);
  }
}

void History::heartbeat() {
  const FencingToken token = some_token();
  ModelJob *const job = holder_of(token);
  const bool runs = job != nullptr && job->may_expire();
  CHECK(leases_->heartbeat(token, now_) == runs);
  if (runs) job->expiry = now_ + types_[job->type].options.visibility_timeout;
}

void History::answer() {
  const FencingToken token = some_token();
  ModelJob *const job = holder_of(token);
  const bool answers = job != nullptr && job->may_expire();
  CHECK(leases_->ended(token) == answers);
  if (answers) job->answered = true;
}

void History::forget() {
  const FencingToken token = some_token();
  ModelJob *const job = holder_of(token);
  CHECK(leases_->forget(token) == (job != nullptr));
  if (job != nullptr) job->where = Where::ended;
}

// As the store decides: a job whose receives are used up has ended.
void History::retry() {
  const FencingToken token = some_token();
  ModelJob *const job = holder_of(token);
  if (job != nullptr && job->receives >= types_[job->type].options.max_receive_count) {
    CHECK(leases_->forget(token));
    job->where = Where::ended;
    return;
  }
  CHECK(leases_->retry(token, now_) == (job != nullptr));
  if (job == nullptr) return;
  job->where = Where::waiting;
  job->due = after_backoff(types_[job->type].options, job->receives);
}

// A moment, or to where something happens: then it does.
void History::pass_time() {
  const auto next = leases_->next_due(now_);
  if (below(2) == 0 || !next) {
    now_ += std::chrono::milliseconds(below(3000));
    return;
  }
  now_ = *next;
  const auto tokens = tokens_.size();
  const auto expires = [this](const ModelJob &job) { return job.may_expire() && job.expiry <= now_; };
  const bool any_expires = std::any_of(jobs_.begin(), jobs_.end(), expires);
  expire();
  if (any_expires) return;
  take_any();
  CHECK(tokens_.size() > tokens);
}

void History::expire() {
  const auto expired = leases_->expire(now_);
  std::size_t expected = 0;
  for (ModelJob &job : jobs_) {
    if (!job.may_expire() || job.expiry > now_) continue;
    ++expected;
    const auto named = std::find_if(expired.begin(), expired.end(), [&](const auto &lease) {
      return lease.token == job.token && lease.key == job.key && lease.type == type_names[job.type];
    });
    REQUIRE(named != expired.end());
    CHECK(named->exhausted == (job.receives >= types_[job.type].options.max_receive_count));
    job.where = named->exhausted ? Where::ended : Where::waiting;
    job.due = {now_, now_};
  }
  CHECK(expired.size() == expected);
}

void History::check_all() const {
  std::optional<TimeRange> next;
  const auto may_be_next = [&next](const TimeRange &moment) {
    if (!next) next = moment;
    next = TimeRange{std::min(next->from, moment.from), std::min(next->to, moment.to)};
  };
  for (std::size_t type = 0; type < types_.size(); ++type) {
    const Leases::Counters expected{count(type, Where::waiting), count(type, Where::starting),
                                    count(type, Where::running), types_[type].more_in_store};
    CHECK(leases_->counters(type_names[type]) == expected);
    if (const auto moment = ready(type)) may_be_next(*moment);
  }
  for (const ModelJob &job : jobs_) {
    if (job.may_expire()) may_be_next({job.expiry, job.expiry});
  }
  const auto said = leases_->next_due(now_);
  REQUIRE(said.has_value() == next.has_value());
  if (!said) return;
  CHECK(*said >= std::max(now_, next->from));
  CHECK(*said <= std::max(now_, next->to));
}

void History::step() {
  const auto chance = below(100);
  if (chance < 8)
    new_job();
  else if (chance < 10)
    redrive();
  else if (chance < 30)
    take(below(types_.size()));
  else if (chance < 45)
    start();
  else if (chance < 50)
    give_back();
  else if (chance < 58)
    heartbeat();
  else if (chance < 61)
    answer();
  else if (chance < 67)
    forget();
  else if (chance < 77)
    retry();
  else if (chance < 92)
    pass_time();
  else if (chance < 95)
    expire();
  else if (chance < 99)
    refill();
  else if (below(4) == 0)
    restart();
  check_all();
}

// Everything comes to an end where handlers answer.
void History::finish() {
  const auto is_left = [](const ModelJob &job) { return job.where != Where::ended; };
  for (int round = 0; std::any_of(jobs_.begin(), jobs_.end(), is_left); ++round) {
    REQUIRE(round < 100'000);
    refill();
    take_any();
    start();
    forget();
    pass_time();
  }
  check_all();
  CHECK_FALSE(leases_->next_due(now_).has_value());
}

} // namespace

TEST_CASE("random histories agree with a simple model") {
  for (const Seed seed : seeds(20)) {
    CAPTURE(seed);
    History history(seed.number);
    for (int step = 0; step < 3000; ++step)
      history.step();
    history.finish();
  }
}
