// Verifies the redelivery state machine over random histories against a naive model: a network that loses, repeats,
// reorders and delays, a worker that restarts and answers with every outcome, and strangers' replies. The model knows
// no timers, only between which two times each job may and must be due. Not verified: costs, sockets, threads.
// ONCED_SEED=N replays one history.
#include "delivery/redelivery.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using onced::BootId;
using onced::MonotonicTime;
using onced::Outcome;
using onced::Redelivery;
using onced::RedeliveryOptions;
using onced::Sequence;
using onced::Tag;
using Effect = Redelivery::ReplyEffect;

void must(bool holds, const char *rule) {
  if (!holds) throw std::runtime_error(rule);
}

// What the model knows of one job.
struct ModelJob {
  std::string bytes;
  Tag tag;
  onced::WallTime issued_at;
  std::uint32_t attempts = 0;
  std::uint32_t attempts_before_boot = 0;
  enum class Place { due, flying, waiting, settled } place = Place::due; // `due` only until something is known
  MonotonicTime earliest;                                                // not due before
  MonotonicTime latest;                                                  // due from then on

  [[nodiscard]] bool open() const { return place != Place::settled; }
};

class Model {
public:
  explicit Model(const RedeliveryOptions &options) : options_(options) {}

  std::vector<ModelJob> jobs; // by sequence, from 1
  std::optional<BootId> boot;
  std::uint64_t resends = 0;
  std::uint64_t ignored = 0;

  ModelJob *find(Sequence sequence) {
    const std::uint64_t number = onced::number_of(sequence);
    return number == 0 || number > jobs.size() ? nullptr : &jobs[number - 1];
  }

  bool has_room(std::size_t bytes) const {
    std::size_t count = 0;
    for (const ModelJob &job : jobs)
      count += job.open() ? 1U : 0U;
    return count < options_.jobs_max && held() + bytes <= options_.bytes_max && bytes <= options_.window_bytes_max;
  }

  std::size_t held() const {
    std::size_t bytes = 0;
    for (const ModelJob &job : jobs)
      bytes += job.open() ? job.bytes.size() : 0;
    return bytes;
  }

  void on_greeting(const BootId &greeted, MonotonicTime now) {
    if (boot == greeted) return;
    boot = greeted;
    for (ModelJob &job : jobs) {
      job.attempts_before_boot = job.attempts;
      if (job.open()) be_due_at(job, ModelJob::Place::due, now, now);
    }
  }

  void on_sent(ModelJob &job, MonotonicTime now) {
    if (++job.attempts > 1) ++resends;
    const auto longest = longest_backoff(job);
    be_due_at(job, ModelJob::Place::flying, now + longest / 2, now + longest);
  }

  void on_waiting(ModelJob &job, Outcome outcome, MonotonicTime now) {
    const auto longest =
        outcome == Outcome::accepted ? MonotonicTime::duration(options_.accepted_ask_again) : longest_backoff(job);
    MonotonicTime earliest = now + (outcome == Outcome::accepted ? longest : longest / 2);
    MonotonicTime latest = now + longest;
    if (job.place == ModelJob::Place::waiting) {
      // Where the old timer may have run out already, only the new one bounds the wait.
      if (now < job.earliest) latest = std::min(latest, job.latest);
      earliest = std::min(earliest, job.earliest);
    }
    be_due_at(job, ModelJob::Place::waiting, earliest, latest);
  }

private:
  static void be_due_at(ModelJob &job, ModelJob::Place place, MonotonicTime earliest, MonotonicTime latest) {
    job.place = place;
    job.earliest = earliest;
    job.latest = latest;
  }

  MonotonicTime::duration longest_backoff(const ModelJob &job) const {
    const std::uint32_t tried = std::max(1U, job.attempts - job.attempts_before_boot);
    const auto uncapped = options_.acknowledgement_timeout * (std::int64_t{1} << std::min(tried - 1, 20U));
    return std::min<std::chrono::milliseconds>(uncapped, options_.acknowledgement_timeout_max);
  }

  RedeliveryOptions options_;
};

struct Delivery {
  Sequence sequence{0};
  Tag tag;
};

struct PendingReply {
  Sequence sequence{0};
  Tag tag;
  Outcome outcome = Outcome::busy;
};

// What the histories went through, so that they cannot quietly come to do nothing.
struct Travelled {
  std::uint64_t settled = 0;
  std::uint64_t resends = 0;
  std::uint64_t ignored_replies = 0;
};

// One history: the sender under test, its network and its worker.
class World {
public:
  explicit World(std::uint64_t seed)
      : chance_(seed), options_(random_options()), model_(options_), sender_(options_, chance_) {
    loss_percent_ = below(60);
    copies_percent_ = below(40);
    current_boot_ = random_boot();
  }

  void run(Travelled &travelled) {
    const std::uint64_t steps = 20 + below(300);
    for (std::uint64_t step = 0; step < steps; ++step) {
      act();
      check_counters();
    }
    settle_all();
    travelled.settled += model_.jobs.size();
    travelled.resends += model_.resends;
    travelled.ignored_replies += model_.ignored;
  }

private:
  std::uint64_t below(std::uint64_t bound) { return chance_.next() % bound; }
  bool happens(std::uint64_t percent) { return below(100) < percent; }

  RedeliveryOptions random_options() {
    RedeliveryOptions options;
    options.jobs_max = 1 + below(40);
    options.window_jobs_max = 1 + below(10);
    options.window_bytes_max = 20 + below(200);
    options.bytes_max = 20 + below(1000);
    options.acknowledgement_timeout = std::chrono::milliseconds(1 + below(2000));
    options.acknowledgement_timeout_max = options.acknowledgement_timeout * static_cast<int>(1 + below(40));
    return options;
  }

  BootId random_boot() { return opaque<BootId>(); }

  template <class Id> Id opaque() {
    Id id;
    for (auto &byte : id.bytes)
      byte = static_cast<std::uint8_t>(below(256));
    return id;
  }

  void act() {
    const std::uint64_t dice = below(100);
    if (dice < 20) {
      add();
    } else if (dice < 45) {
      send();
    } else if (dice < 60) {
      worker_takes();
    } else if (dice < 75) {
      sender_hears();
    } else if (dice < 80) {
      forge();
    } else if (dice < 90) {
      now_ += std::chrono::microseconds(1U << below(26));
    } else if (dice < 94) {
      sleep_until_due();
    } else if (dice < 97) {
      greet(current_boot_);
    } else if (dice < 98) {
      greet(random_boot()); // another worker, or an old greeting
    } else {
      current_boot_ = random_boot();
      if (happens(50)) deliveries_.clear();
      if (happens(50)) replies_.clear();
      if (happens(70)) greet(current_boot_);
    }
  }

  void add() {
    const std::size_t bytes = below(20 + below(80));
    must(sender_.has_room(bytes) == model_.has_room(bytes), "room is what the limits leave");
    if (!sender_.has_room(bytes)) return;
    ModelJob job;
    job.bytes = std::string(bytes, static_cast<char>('a' + below(26)));
    job.tag = opaque<Tag>();
    job.issued_at = onced::WallTime(std::chrono::microseconds(below(1'000'000)));
    job.earliest = job.latest = now_;
    const Sequence sequence = sender_.add(job.bytes, job.tag, job.issued_at);
    model_.jobs.push_back(job);
    must(onced::number_of(sequence) == model_.jobs.size(), "sequences count from 1");
  }

  // Asks what is due, and hands all, some or none of it over.
  void send() {
    const std::size_t jobs_max = below(8);
    const std::size_t bytes_max = below(100);
    const auto jobs = checked_due(jobs_max, bytes_max);
    std::vector<Redelivery::DueJob> handed_over;
    const std::uint64_t percent = happens(70) ? 100 : below(100);
    for (const auto &job : jobs) {
      if (happens(percent)) handed_over.push_back(job);
    }
    hand_over(handed_over);
  }

  void hand_over(const std::vector<Redelivery::DueJob> &jobs) {
    sender_.sent(jobs, now_);
    for (const auto &job : jobs) {
      model_.on_sent(*model_.find(job.sequence), now_);
      transmit(deliveries_, Delivery{job.sequence, job.tag});
    }
  }

  template <class Packet> void transmit(std::vector<Packet> &network, const Packet &packet) {
    if (happens(loss_percent_)) return;
    network.push_back(packet);
    while (happens(copies_percent_))
      network.push_back(packet);
  }

  // Any packet may come next: that is delay and disorder.
  template <class Packet> std::optional<Packet> receive(std::vector<Packet> &network) {
    if (network.empty()) return std::nullopt;
    std::swap(network[below(network.size())], network.back());
    const Packet packet = network.back();
    network.pop_back();
    return packet;
  }

  std::vector<Redelivery::DueJob> checked_due(std::size_t jobs_max, std::size_t bytes_max) {
    auto jobs = sender_.due(now_, jobs_max, bytes_max);
    check_window();
    must(model_.boot || jobs.empty(), "nothing is due before a greeting");
    std::size_t bytes = 0;
    std::uint64_t previous = 0;
    for (const auto &job : jobs) {
      check_due_job(job);
      must(onced::number_of(job.sequence) > previous, "due jobs come oldest first");
      previous = onced::number_of(job.sequence);
      bytes += job.job.size();
    }
    must(jobs.size() <= jobs_max, "no more jobs than asked for");
    must(bytes <= bytes_max || jobs.size() == 1, "no more bytes than asked for");
    const auto counters = sender_.counters();
    must(counters.in_flight + jobs.size() <= options_.window_jobs_max, "due jobs fit the window");
    must(counters.in_flight_bytes + bytes <= options_.window_bytes_max, "due bytes fit the window");
    if (model_.boot) check_nothing_is_passed_by(jobs, bytes, jobs_max, bytes_max);
    return jobs;
  }

  void check_due_job(const Redelivery::DueJob &job) {
    const ModelJob *const known = model_.find(job.sequence);
    must(known != nullptr, "only added jobs are sent");
    must(known->open(), "a settled job is never sent again");
    must(job.attempt == known->attempts + 1, "attempts rise by one with each send");
    must(job.tag == known->tag && job.job == known->bytes && job.issued_at == known->issued_at,
         "tag and bytes and time of issue never change");
    must(now_ >= known->earliest, "no job is sent again before its time");
  }

  // The first job that must be due and was not given: there is a reason to stop at it or at one before it.
  void check_nothing_is_passed_by(const std::vector<Redelivery::DueJob> &jobs, std::size_t bytes, std::size_t jobs_max,
                                  std::size_t bytes_max) {
    const auto counters = sender_.counters();
    if (jobs.size() == jobs_max || counters.in_flight + jobs.size() == options_.window_jobs_max) return;
    const std::uint64_t last = jobs.empty() ? 0 : onced::number_of(jobs.back().sequence);
    bool may_stop = false;
    for (std::uint64_t number = 1; number <= model_.jobs.size(); ++number) {
      const ModelJob &job = model_.jobs[number - 1];
      if (!job.open() || now_ < job.earliest) continue;
      if (number <= last) {
        const bool given = std::any_of(jobs.begin(), jobs.end(),
                                       [&](const auto &due) { return onced::number_of(due.sequence) == number; });
        must(given || now_ < job.latest, "no due job is passed by");
        continue;
      }
      const std::size_t with_it = bytes + job.bytes.size();
      if (counters.in_flight_bytes + with_it > options_.window_bytes_max) may_stop = true;
      if (!jobs.empty() && with_it > bytes_max) may_stop = true;
      must(may_stop || now_ < job.latest, "no due job is held back without a reason");
    }
  }

  // Only after `due`, which lets the timers of this moment run out.
  void check_window() {
    std::size_t surely = 0;
    std::size_t perhaps = 0;
    std::size_t surely_bytes = 0;
    std::size_t surely_waiting = 0;
    std::size_t perhaps_waiting = 0;
    for (const ModelJob &job : model_.jobs) {
      if (job.place == ModelJob::Place::flying) {
        surely += now_ < job.earliest ? 1U : 0U;
        perhaps += now_ < job.latest ? 1U : 0U;
        surely_bytes += now_ < job.earliest ? job.bytes.size() : 0;
      }
      if (job.place == ModelJob::Place::waiting) {
        surely_waiting += now_ < job.earliest ? 1U : 0U;
        perhaps_waiting += now_ < job.latest ? 1U : 0U;
      }
    }
    const auto counters = sender_.counters();
    must(surely <= options_.window_jobs_max, "the window bounds the jobs in flight");
    must(surely_bytes <= options_.window_bytes_max, "the window bounds the bytes in flight");
    must(surely <= counters.in_flight && counters.in_flight <= perhaps, "jobs in flight are counted");
    must(surely_bytes <= counters.in_flight_bytes, "bytes in flight are counted");
    must(surely_waiting <= counters.waiting && counters.waiting <= perhaps_waiting, "waiting jobs are counted");
  }

  void check_counters() {
    const auto counters = sender_.counters();
    std::size_t open = 0;
    for (const ModelJob &job : model_.jobs)
      open += job.open() ? 1U : 0U;
    must(counters.unsettled == open, "unsettled jobs are counted");
    must(counters.bytes == model_.held(), "bytes held are counted");
    must(counters.resends == model_.resends, "resends are counted");
    must(counters.ignored_replies == model_.ignored, "ignored replies are counted");
    must(counters.in_flight <= options_.window_jobs_max, "the window never leaks");
    must(counters.in_flight + counters.waiting <= counters.unsettled, "a job is in one state");
    must(counters.in_flight > 0 || counters.in_flight_bytes == 0, "an empty window holds no bytes");
  }

  // Just before the time that the sender names nothing is due; then something is, or it names a later time.
  void sleep_until_due() {
    const auto next = sender_.next_due(now_);
    if (!next) {
      must(!model_.boot || sender_.counters().unsettled == 0, "an unsettled job always has a next time");
      return;
    }
    must(*next >= now_, "the next time is not in the past");
    if (*next > now_) {
      now_ = *next - 1ns;
      must(checked_due(1, 1).empty(), "nothing is due before the next time");
      now_ = *next;
    }
    const auto jobs = checked_due(1, 1);
    must(!jobs.empty() || sender_.next_due(now_) > now_, "the next time comes nearer");
  }

  void greet(const BootId &boot) {
    sender_.on_greeting(boot, now_);
    model_.on_greeting(boot, now_);
  }

  void worker_takes() {
    const auto delivery = receive(deliveries_);
    if (!delivery) return;
    custody_.resize(model_.jobs.size() + 1, Outcome::busy);
    Outcome &held = custody_[onced::number_of(delivery->sequence)];
    // A final outcome stays; what is accepted or busy may become anything but busy again.
    if (!onced::traits_of(held).final) {
      if (calm_ || happens(50)) {
        held = static_cast<Outcome>(below(6));
      } else if (happens(50)) {
        held = Outcome::accepted;
      }
    }
    transmit(replies_, PendingReply{delivery->sequence, delivery->tag, held});
  }

  void sender_hears() {
    if (const auto reply = receive(replies_)) apply(*reply);
  }

  // A stranger, or a cloned outbox: another tag, any sequence; the right tag only for a job that was never sent.
  void forge() {
    PendingReply reply{Sequence{below(model_.jobs.size() + 3)}, opaque<Tag>(), static_cast<Outcome>(below(8))};
    const ModelJob *const job = model_.find(reply.sequence);
    if (job != nullptr && job->attempts == 0) reply.tag = job->tag;
    apply(reply);
  }

  void apply(const PendingReply &reply) {
    const auto durability = happens(50) ? onced::Durability::fsync : onced::Durability::page_cache;
    const std::string result(below(4), 'r');
    const std::string detail(below(4), 'd');
    const auto heard = sender_.on_reply({reply.sequence, reply.tag, reply.outcome, result, detail, durability}, now_);

    ModelJob *const job = model_.find(reply.sequence);
    must(heard.settled.has_value() == (heard.effect == Effect::settled), "a settled job comes with its record");
    if (job == nullptr || !job->open() || job->attempts == 0 || job->tag != reply.tag) {
      must(heard.effect == Effect::ignored, "a reply to nothing that was sent is ignored");
      ++model_.ignored;
    } else if (reply.outcome == Outcome::accepted || reply.outcome == Outcome::busy) {
      must(heard.effect == Effect::waiting, "a reply that is not final makes the job wait");
      model_.on_waiting(*job, reply.outcome, now_);
    } else {
      must(heard.effect == Effect::settled, "a final reply settles the job");
      must(heard.settled->sequence == reply.sequence && heard.settled->outcome == reply.outcome &&
               heard.settled->result == result && heard.settled->detail == detail &&
               heard.settled->durability == durability && heard.settled->attempts == job->attempts,
           "the record is the reply and the attempts");
      job->place = ModelJob::Place::settled;
    }
  }

  // The faults stop: every timer runs out within the longest wait, and each job that is sent then settles.
  void settle_all() {
    calm_ = true;
    loss_percent_ = 0;
    copies_percent_ = 0;
    greet(current_boot_);
    const std::size_t rounds_max = 10 + 3 * model_.jobs.size();
    const MonotonicTime last = now_ + std::max(options_.acknowledgement_timeout_max, options_.accepted_ask_again);
    for (std::size_t round = 0; sender_.counters().unsettled > 0; ++round) {
      must(round < rounds_max, "every job settles in a bounded number of rounds once the faults stop");
      must(now_ <= last, "every job settles within the longest wait once the faults stop");
      hand_over(checked_due(1'000, 1'000'000));
      while (!deliveries_.empty())
        worker_takes();
      while (!replies_.empty())
        sender_hears();
      check_counters();
      const auto next = sender_.next_due(now_);
      must(next.has_value() || sender_.counters().unsettled == 0, "an unsettled job always has a next time");
      if (next) now_ = *next;
    }
    must(sender_.counters().in_flight == 0 && sender_.counters().waiting == 0, "the window is empty at the end");
  }

  onced::SeededRandom chance_;
  RedeliveryOptions options_;
  Model model_;
  Redelivery sender_;
  MonotonicTime now_{1000h};
  BootId current_boot_;
  std::uint64_t loss_percent_ = 0;
  std::uint64_t copies_percent_ = 0;
  bool calm_ = false;
  std::vector<Delivery> deliveries_;
  std::vector<PendingReply> replies_;
  std::vector<Outcome> custody_; // what the worker holds, by sequence; busy: nothing
};

void run_history(std::uint64_t seed, Travelled &travelled) {
  try {
    World(seed).run(travelled);
  } catch (const std::runtime_error &broken) {
    FAIL_CHECK("replay with ONCED_SEED=", seed, ": ", broken.what());
  }
}

} // namespace

TEST_CASE("every job settles exactly once through loss and restarts and forged replies") {
  Travelled travelled;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs
  if (const char *const seed = std::getenv("ONCED_SEED")) {
    run_history(std::strtoull(seed, nullptr, 10), travelled);
    return;
  }
  for (std::uint64_t seed = 1; seed <= 2000; ++seed)
    run_history(seed, travelled);
  CHECK(travelled.settled > 10'000);
  CHECK(travelled.resends > 10'000);
  CHECK(travelled.ignored_replies > 10'000);
}
