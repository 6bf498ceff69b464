#include "crash/round.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "crash/changes.hpp"
#include "crash/traffic.hpp"

namespace onced::crash {
namespace {

class Round {
public:
  Round(Lab &lab, Deck &deck, std::uint64_t seed, std::string name)
      : lab_(lab), deck_(deck), dice_(seed), name_(std::move(name)) {}

  std::string run() {
    try {
      draw();
      change();
      start();
      for (next_ = 0; next_ < kills_.size(); ++next_)
        perform(kills_[next_]);
      end_senders();
      end_worker();
    } catch (const std::exception &error) {
      throw std::runtime_error(error.what() + lab_.state() + "\n  killed before: " + told_);
    }
    return told_;
  }

private:
  // --- What will happen ------------------------------------------------------------------------------------------
  void draw() {
    const std::string dealt = deck_.deal();
    if (is_of_change(dealt)) {
      change_point_ = dealt;
      if (dice_.one_in(2)) kills_.emplace_back(worker_kill);
    } else {
      kills_.push_back(dealt);
      if (dice_.one_in(3)) kills_.push_back(draw_second(dealt));
    }
    is_lossy_ = dice_.one_in(5);
    scans_between_ = dice_.one_in(2);
    lab_.count_recoveries(!is_lossy_ && !scans_between_);
  }

  // A sender's point takes effect from its start, so it comes first.
  std::string draw_second(const std::string &first) {
    if (!is_of_worker(first)) return std::string(worker_kill);
    for (;;) {
      const std::string &kill = dice_.one_of(deck_.all());
      if (!is_of_change(kill) && (is_of_worker(kill) || !is_point(kill))) return kill;
    }
  }

  // --- Dead letters ----------------------------------------------------------------------------------------------
  void change() {
    using Who = ChangeKill::Who;
    if (change_point_.empty() && !dice_.one_in(5)) return;
    ChangeKill kill{.point = change_point_};
    if (change_point_.empty()) kill.who = dice_.one_of(std::vector{Who::nobody, Who::worker, Who::command});
    const bool killed = change_dead_letters(lab_, dice_, kill, name_);
    if (!change_point_.empty()) count(change_point_, killed);
    if (kill.who == Who::worker) count(std::string(worker_kill), true);
    if (kill.who == Who::command) count("command of a change", true);
  }

  // --- Traffic ---------------------------------------------------------------------------------------------------
  // `next`: which of the kills it may meet.
  Arguments worker_arguments(std::size_t next) {
    Arguments arguments{"--workers", std::to_string(dice_.between(1, 2))};
    if (is_lossy_) arguments = arguments + Arguments{"--drop-replies", "0.1"};
    if (next < kills_.size() && is_of_worker(kills_[next]) && is_point(kills_[next])) {
      arguments = arguments + kill_at(kills_[next], 3);
    }
    return arguments;
  }

  Arguments kill_at(const std::string &point, std::size_t latest) {
    return {"--kill-at", point + ":" + std::to_string(dice_.between<std::size_t>(1, latest))};
  }

  void start() {
    lab_.start_worker(worker_arguments(0));
    const std::size_t senders = dice_.between<std::size_t>(1, Lab::senders);
    for (SenderNumber number = 0; number < senders; ++number) {
      const auto jobs = draw_jobs(dice_, lab_.model(), number, name_ + "-" + std::to_string(number));
      start_sender(number, jobs, number == 0 ? sender_point(jobs.size()) : Arguments{});
    }
    if (dice_.one_in(3)) lab_.send_poison("poison of " + name_, !dice_.one_in(3));
  }

  Arguments sender_point(std::size_t jobs) {
    if (kills_.empty() || is_of_worker(kills_[0]) || !is_point(kills_[0])) return {};
    // Those of the outbox are met once a job, the others once a message.
    return kill_at(kills_[0], kills_[0].find("-outbox") == std::string::npos ? 5 : jobs);
  }

  void start_sender(SenderNumber number, const std::vector<Job> &drawn, const Arguments &more) {
    std::vector<Job> jobs = lab_.take_not_taken(number);
    std::set<std::string> ids;
    for (const Job &job : jobs)
      ids.insert(job.operation_id);
    std::copy_if(drawn.begin(), drawn.end(), std::back_inserter(jobs),
                 [&](const Job &job) { return !ids.contains(job.operation_id); });
    // Small windows make many messages, so that points are met with jobs in flight.
    Arguments arguments = more + Arguments{"--window", "8"};
    if (is_lossy_) {
      arguments = arguments + Arguments{"--shuffle", "--loss", "0.1"} +
                  Arguments{"--acknowledgement-timeout", "100ms", "--acknowledgement-timeout-max", "400ms"};
    }
    const auto copies = dice_.between<std::size_t>(1, 2);
    lab_.start_sender(number, jobs, copies, input_of(dice_, jobs), arguments);
  }

  // --- Kills -----------------------------------------------------------------------------------------------------
  void perform(const std::string &kill) {
    if (is_of_worker(kill)) {
      is_point(kill) ? meet_worker_point(kill) : kill_worker();
      if (scans_between_) lab_.compare();
      lab_.start_worker(worker_arguments(next_ + 1));
    } else {
      is_point(kill) ? wait([this] { return !lab_.sender_runs(0); }) : kill_sender(0);
      const bool killed = lab_.sender_ended(0);
      count(kill, killed);
      if (killed) start_sender(0, {}, {});
    }
  }

  void meet_worker_point(const std::string &point) {
    wait([this] { return !lab_.worker_runs() || !lab_.any_sender_runs(); });
    const bool met = lab_.worker_was_killed();
    count(point, met);
    if (!met) kill_worker();
  }

  void kill_worker() {
    read_some_lines(0);
    const bool at_work = lab_.any_sender_runs();
    lab_.kill_worker();
    if (at_work) {
      count(std::string(worker_kill), true);
    } else {
      ++lab_.tally().kills_at_rest;
    }
  }

  void kill_sender(SenderNumber number) {
    read_some_lines(number);
    lab_.kill_sender(number);
  }

  void read_some_lines(SenderNumber number) {
    lab_.read_lines(number, dice_.between<std::size_t>(0, lab_.model().held(number) / 2));
  }

  void wait(const std::function<bool()> &is_so) {
    const bool came = testing::eventually([&] {
      lab_.watch_memory();
      return is_so();
    });
    if (!came) throw std::runtime_error("a kill point was not met and no sender has ended");
  }

  void count(const std::string &kill, bool came) {
    if (!came) return deck_.put_back(kill);
    ++lab_.tally().kills[kill];
    told_.append(told_.empty() ? "" : ", ").append(kill);
  }

  // --- The end ---------------------------------------------------------------------------------------------------
  void end_senders() {
    const bool all_at_once = dice_.one_in(8);
    if (all_at_once) kill_worker();
    for (SenderNumber number = 0; number < Lab::senders; ++number) {
      if (!lab_.was_started(number)) continue;
      if (all_at_once) {
        lab_.kill_sender(number); // nobody is there to settle one more of its jobs
      } else if (dice_.one_in(5)) {
        kill_sender(number);
      }
      if (lab_.sender_ended(number)) count(std::string(sender_kill), true);
    }
    lab_.poison_ended(all_at_once);
  }

  void end_worker() {
    if (lab_.worker_runs() && dice_.one_in(4)) lab_.drain_worker();
    if (lab_.worker_runs()) {
      lab_.kill_worker();
      ++lab_.tally().kills_at_rest;
    }
    lab_.compare();
    lab_.model().at_rest();
  }

  Lab &lab_;
  Deck &deck_;
  Dice dice_;
  std::string name_;
  std::string change_point_;       // where a change of dead letters is killed; empty: nowhere
  std::vector<std::string> kills_; // of the traffic, in their order
  std::size_t next_ = 0;           // of them
  bool is_lossy_ = false;          // some sends and replies are dropped
  bool scans_between_ = false;     // the database is looked at before the worker is started again
  std::string told_;
};

} // namespace

std::string run_round(Lab &lab, Deck &deck, std::uint64_t seed, const std::string &name) {
  return Round(lab, deck, seed, name).run();
}

} // namespace onced::crash
