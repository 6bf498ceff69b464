#include "rehearsal/deliveries.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "onced/kill_point.hpp"
#include "onced/outcome.hpp"

namespace onced::rehearsal {
namespace {

constexpr std::string_view accepted_name = traits_of(Outcome::accepted).name;

std::uint64_t number_in(const Told &told, const char *name) {
  return told.fields.at(name).get<std::uint64_t>();
}

class Joiner {
public:
  explicit Joiner(const Traces &traces) : traces_(traces) {}

  std::vector<Delivery> join() {
    take_redriven();
    for (std::size_t stream = 0; stream < traces_.senders.size(); ++stream)
      read_published(stream);
    std::stable_sort(deliveries_.begin(), deliveries_.end(), [](const Delivery &one, const Delivery &other) {
      return std::tie(one.published, one.sender, one.sequence, one.attempt) <
             std::tie(other.published, other.sender, other.sequence, other.attempt);
    });
    for (Delivery &delivery : deliveries_) {
      by_sequence_[{delivery.sender, delivery.sequence}].push_back(&delivery);
      by_operation_[delivery.operation_id].push_back(&delivery);
    }
    read_worker();
    for (std::size_t stream = 0; stream < traces_.senders.size(); ++stream)
      read_replies(stream);
    note_kills();
    note_commits();
    note_marks();
    return std::move(deliveries_);
  }

private:
  void take_redriven() {
    for (const Redriven &one : traces_.redriven) {
      Delivery delivery;
      delivery.operation_id = one.operation_id;
      delivery.outcome = one.outcome;
      delivery.log = one.log;
      deliveries_.push_back(std::move(delivery));
    }
  }

  void read_published(std::size_t stream) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> known;
    for (const Told &told : traces_.senders[stream]) {
      if (told.name != "delivery.published") continue;
      const auto [at, is_new] =
          known.try_emplace({number_in(told, "sequence"), number_in(told, "attempt")}, deliveries_.size());
      if (is_new) {
        Delivery delivery;
        delivery.stream = stream;
        delivery.operation_id = text_in(told.fields, "operation_id");
        delivery.tag = text_in(told.fields, "tag");
        delivery.sender = text_in(told.fields, "sender");
        delivery.sequence = number_in(told, "sequence");
        delivery.attempt = number_in(told, "attempt");
        deliveries_.push_back(std::move(delivery));
      }
      deliveries_[at->second].published = told.at; // the last, where a pipe was full
    }
  }

  // Those of the job that an event speaks of, by publish time.
  [[nodiscard]] const std::vector<Delivery *> &deliveries_of(const Told &told) {
    return by_sequence_[{text_in(told.fields, "sender"), number_in(told, "sequence")}];
  }

  // The delivery that the worker speaks of: of those published by then under this name, the latest. A resumed sender
  // counts its attempts anew.
  Delivery *find(const Told &told) {
    Delivery *found = nullptr;
    for (Delivery *delivery : deliveries_of(told)) {
      if (delivery->published > told.at) break;
      if (delivery->attempt == told.fields.at("attempt") && delivery->tag == told.fields.at("tag")) found = delivery;
    }
    return found;
  }

  void read_worker() {
    for (const Told &told : traces_.worker) {
      const bool settled = told.name == "delivery.settled";
      if (!settled && told.name != "delivery.consumed") continue;
      Delivery *delivery = find(told);
      if (delivery == nullptr) continue;
      if (!settled) {
        delivery->consumed = told.at;
        delivery->consumed_log = told.line;
        continue;
      }
      delivery->settled = told.at;
      delivery->outcome = text_in(told.fields, "outcome");
      delivery->log = told.line;
    }
  }

  // A reply names no attempt: it answers the last that was settled so by then or, as what became of a queued job, the
  // last that was accepted. Where the worker has told nothing, it is the last that was published and has no outcome
  // yet.
  Delivery *answered_by(const Told &told, std::size_t stream) {
    const std::string outcome = text_in(told.fields, "outcome");
    Delivery *settled_so = nullptr;
    Delivery *accepted = nullptr;
    Delivery *open = nullptr;
    for (Delivery *delivery : deliveries_of(told)) {
      if (delivery->published > told.at) break;
      if (delivery->stream != stream) continue;
      const bool settled = delivery->settled != 0 && delivery->settled <= told.at;
      if (settled && delivery->outcome == outcome) settled_so = delivery;
      if (delivery->outcome == accepted_name) accepted = delivery;
      if (delivery->outcome.empty()) open = delivery;
    }
    if (settled_so != nullptr) return settled_so;
    return accepted != nullptr ? accepted : open;
  }

  // A reply that the sender has thrown away tells us, and not the sender, what became of the delivery.
  void read_replies(std::size_t stream) {
    for (const Told &told : traces_.senders[stream]) {
      const bool acknowledged = told.name == "delivery.acknowledged";
      if (!acknowledged && told.name != "reply.lost") continue;
      Delivery *answered = answered_by(told, stream);
      if (answered == nullptr) continue;
      if (acknowledged) answered->acknowledged = told.at;
      if (acknowledged && answered->outcome == accepted_name) answered->final_outcome = text_in(told.fields, "outcome");
      if (answered->outcome.empty()) answered->outcome = text_in(told.fields, "outcome");
      if (answered->log.empty()) answered->log = told.line;
    }
  }

  // What was in hand of a process as it was killed.
  void note_kills() {
    for (const Killed &kill : traces_.kills) {
      const bool by_worker = kill.is_worker && traces_.worker_tells;
      for (Delivery &delivery : deliveries_) {
        const Micros taken = by_worker ? delivery.consumed : delivery.published;
        const bool open = by_worker ? delivery.settled == 0 : delivery.acknowledged == 0;
        if (!open || taken < kill.began || taken > kill.ended || taken == 0) continue;
        delivery.killed = kill.point;
        // Its worker could tell no more than that.
        if (delivery.log.empty()) delivery.log = delivery.consumed_log;
      }
    }
  }

  // The delivery by which a row came: that which stored it, that whose worker died with it, the first that was taken
  // into custody or, of a worker that has told nothing, the last before.
  Delivery *committed_by(const std::string &operation_id, Micros committed) {
    Delivery *accepted = nullptr;
    Delivery *untold = nullptr;
    for (Delivery *delivery : by_operation_[operation_id]) {
      const bool died_after = delivery->settled == 0 && delivery->consumed != 0 && committed >= delivery->consumed &&
                              delivery->killed == name_of(KillPoint::worker_after_commit);
      if (delivery->outcome == "stored" || died_after) return delivery;
      if (accepted == nullptr && delivery->outcome == accepted_name) accepted = delivery;
      if (traces_.worker.empty() && delivery->outcome.empty() && delivery->published <= committed) untold = delivery;
    }
    return accepted != nullptr ? accepted : untold;
  }

  void note_commits() {
    for (const auto &[operation_id, committed] : traces_.commits) {
      if (Delivery *delivery = committed_by(operation_id, committed)) delivery->committed = committed;
    }
  }

  // A mark is an effect: of the first delivery of its job that may have had it, and rather of one that says so.
  void note_marks() {
    for (const Mark &mark : traces_.marks) {
      Delivery *marked = nullptr;
      for (Delivery *delivery : by_operation_[mark.operation_id]) {
        if (delivery->committed != 0 || delivery->published > micros_of(mark.at)) continue;
        const bool stored = delivery->outcome == "stored" || !delivery->killed.empty();
        if (stored || (marked == nullptr && delivery->outcome.empty())) marked = delivery;
        if (stored) break;
      }
      if (marked != nullptr) marked->committed = micros_of(mark.at);
    }
  }

  const Traces &traces_;
  std::vector<Delivery> deliveries_; // by publish time; not moved once the next point into it
  std::map<std::pair<std::string, std::uint64_t>, std::vector<Delivery *>> by_sequence_;
  std::map<std::string, std::vector<Delivery *>> by_operation_;
};

} // namespace

std::vector<Delivery> join_deliveries(const Traces &traces) {
  return Joiner(traces).join();
}

} // namespace onced::rehearsal
