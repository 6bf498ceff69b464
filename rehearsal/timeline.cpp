#include "rehearsal/timeline.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace onced::rehearsal {
namespace {

class Timeline {
public:
  Timeline(const Stage &stage, const Traces &traces, const std::vector<Delivery> &deliveries)
      : stage_(stage), traces_(traces), deliveries_(deliveries) {}

  std::vector<Json> draw() {
    add_processes();
    for (const Moment &moment : stage_.moments())
      add(micros_of(moment.at), moment.what, moment.detail);
    add_store();
    if (stage_.kills().empty() && !has_moments_ && traces_.effects.empty()) return {};
    add_job();
    std::stable_sort(line_.begin(), line_.end(),
                     [](const Json &one, const Json &other) { return one["at_us"] < other["at_us"]; });
    return std::move(line_);
  }

private:
  void add(Micros at, const std::string &what, const Json &operation_id, const Json &attempt,
           const std::string &detail) {
    if (at == 0) return;
    line_.push_back({{"at", iso_time(time_of(at))},
                     {"at_us", at},
                     {"what", what},
                     {"operation_id", operation_id},
                     {"attempt", attempt},
                     {"detail", detail}});
  }
  void add(Micros at, const std::string &what, const std::string &detail) { add(at, what, nullptr, nullptr, detail); }
  void add(Micros at, const std::string &what, const Delivery &delivery, const std::string &detail = "") {
    add(at, what, delivery.operation_id, delivery.attempt, detail);
  }

  void add_processes() {
    bool worker_was_started = false;
    for (const auto &child : stage_.children()) {
      if (child->role() == provider_role || child->role() == next_worker_role) continue;
      const bool is_worker = child->role() == "worker";
      add(micros_of(child->started_at()), is_worker && worker_was_started ? "restart" : "start", child->role());
      add(micros_of(child->ended_at()), child->was_killed() ? "kill" : "end", child->role() + ", " + child->end());
      worker_was_started = worker_was_started || is_worker;
    }
  }

  void add_store() {
    for (const Told &told : traces_.worker) {
      if (told.name == "store.unavailable") add(told.at, "unavailable", text_in(told.fields, "cause"));
      if (told.name == "store.reopened") add(told.at, "available", "the store was opened again");
      has_moments_ = has_moments_ || told.name == "store.unavailable";
    }
  }

  void add_job() {
    if (deliveries_.empty()) return;
    auto first = std::find_if(deliveries_.begin(), deliveries_.end(),
                              [](const Delivery &delivery) { return !delivery.killed.empty(); });
    if (first == deliveries_.end()) first = deliveries_.begin();
    bool published = false;
    for (const Delivery &delivery : deliveries_) {
      if (delivery.operation_id != first->operation_id) continue;
      add(delivery.published, published ? "redelivery" : "publish", delivery);
      published = true;
      add(delivery.consumed, "consume", delivery);
      add(delivery.committed, "commit", delivery);
      add(delivery.acknowledged, "acknowledgement", delivery,
          delivery.final_outcome.empty() ? delivery.outcome : delivery.final_outcome);
    }
    for (const Effect &effect : traces_.effects) {
      if (effect.operation_id == first->operation_id) add(effect.at, "effect", effect.operation_id, nullptr, "");
    }
  }

  const Stage &stage_;
  const Traces &traces_;
  const std::vector<Delivery> &deliveries_;
  std::vector<Json> line_;
  bool has_moments_ = false;
};

} // namespace

std::vector<Json> timeline_of(const Stage &stage, const Traces &traces, const std::vector<Delivery> &deliveries) {
  return Timeline(stage, traces, deliveries).draw();
}

std::vector<BacklogPoint> backlog_of(const Traces &traces, const std::vector<Delivery> &deliveries) {
  struct Change {
    int waiting = 0;
    int in_hand = 0;
  };
  std::map<Micros, Change> changes;
  for (const std::vector<Told> &stream : traces.senders) {
    for (const Told &told : stream) {
      if (told.name == "job.kept") ++changes[told.at].waiting;
      if (told.name == "delivery.acknowledged") --changes[told.at].waiting;
    }
  }
  for (const Delivery &delivery : deliveries) {
    if (delivery.consumed == 0 || delivery.settled == 0) continue;
    ++changes[delivery.consumed].in_hand;
    --changes[delivery.settled].in_hand;
  }
  std::vector<BacklogPoint> backlog;
  Change sum;
  for (const auto &[at, change] : changes) {
    sum.waiting += change.waiting;
    sum.in_hand += change.in_hand;
    const auto shown = [](int count) { return static_cast<std::size_t>(std::max(count, 0)); }; // a clock may step
    backlog.push_back({at, shown(sum.waiting), shown(sum.in_hand)});
  }
  return backlog;
}

} // namespace onced::rehearsal
