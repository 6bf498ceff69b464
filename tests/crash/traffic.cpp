#include "crash/traffic.hpp"

#include <limits>
#include <set>

namespace onced::crash {
namespace {

class Draw {
public:
  Draw(Dice &dice, const Model &model, SenderNumber sender, std::string name)
      : dice_(dice), model_(model), sender_(sender), name_(std::move(name)) {}

  std::vector<Job> jobs() {
    const auto times = [this](int low, int high, auto draw) {
      for (int left = dice_.between(low, high); left > 0; --left)
        draw();
    };
    times(60, 150, [this] { add_new(); });
    times(0, 2, [this] { add_failing(); });
    times(0, 2, [this] { add_invalid(); });
    if (!model_.known().empty()) {
      times(10, 30, [this] { add_again(); });
      times(2, 6, [this] { add_conflict(); });
    }
    dice_.shuffle(jobs_);
    return std::move(jobs_);
  }

private:
  std::string next_id() { return name_ + "-" + std::to_string(++drawn_); }

  void add(const Job &job) {
    if (!model_.holds(sender_, job.operation_id) && ids_.insert(job.operation_id).second) jobs_.push_back(job);
  }

  void add_new() {
    Job job = draw_job(dice_, next_id());
    if (dice_.one_in(10)) job.effect_key = "event-" + job.operation_id;
    add(job);
  }

  void add_failing() { add({.operation_id = next_id(), .numbers = {std::numeric_limits<std::int64_t>::max(), 1}}); }

  void add_invalid() {
    Job job = draw_job(dice_, next_id());
    job.unknown_field = dice_.one_in(2);
    if (!job.unknown_field) job.type = "unheard-of";
    add(job);
  }

  // Half of the time one of the latest, which another sender may hold at this moment.
  Job draw_known() {
    const auto &known = model_.known();
    const std::size_t among = dice_.one_in(2) ? std::min<std::size_t>(known.size(), 100) : known.size();
    return known[known.size() - dice_.between<std::size_t>(1, among)];
  }

  void add_again() {
    Job job = draw_known();
    if (!job.effect_key.empty() && dice_.one_in(2)) job.operation_id = next_id(); // another operation, the same event
    add(job);
  }

  void add_conflict() {
    Job job = draw_known();
    if (refusal_of(job)) return;
    job.numbers.push_back(dice_.between<std::int64_t>(1, 1'000'000));
    add(job);
  }

  Dice &dice_;
  const Model &model_;
  SenderNumber sender_;
  std::string name_;
  int drawn_ = 0;
  std::vector<Job> jobs_;
  std::set<std::string> ids_;
};

} // namespace

std::vector<Job> draw_jobs(Dice &dice, const Model &model, SenderNumber sender, const std::string &name) {
  return Draw(dice, model, sender, name).jobs();
}

Job draw_job(Dice &dice, const std::string &operation_id) {
  Job job{.operation_id = operation_id};
  for (int left = dice.between(1, 4); left > 0; --left) {
    // So few large ones stay within 64 bits.
    const std::int64_t limit = dice.one_in(8) ? (1LL << 60) : 100'000;
    job.numbers.push_back(dice.between(-limit, limit));
  }
  return job;
}

std::string input_of(Dice &dice, const std::vector<Job> &jobs) {
  std::string text;
  for (const Job &job : jobs)
    text.append(json_of(job, dice.one_in(4) ? Notation::floats : Notation::integers)).append("\n");
  return text;
}

} // namespace onced::crash
