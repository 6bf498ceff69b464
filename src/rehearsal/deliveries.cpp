#include "rehearsal/deliveries.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>

#include "onced/job.hpp"
#include "onced/kill_point.hpp"
#include "onced/store.hpp"

namespace onced::rehearsal {
namespace {

std::uint64_t number_in(const Json &event, const char *name) {
  return event.at(name).get<std::uint64_t>();
}

class Joiner {
public:
  explicit Joiner(Stage &stage) : stage_(stage) {}

  Result<std::vector<Delivery>> join() {
    for (const Redriven &one : stage_.redriven()) {
      deliveries_.push_back({});
      deliveries_.back().operation_id = one.operation_id;
      deliveries_.back().outcome = one.outcome;
      deliveries_.back().log = one.log;
    }
    for (std::size_t stream = 0; stream < stage_.sender_events().size(); ++stream)
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
    for (std::size_t stream = 0; stream < stage_.sender_events().size(); ++stream)
      read_replies(stream);
    note_kills();
    if (stage_.setting().is_foreign()) {
      note_marks();
    } else if (auto noted = note_commits(); !noted) {
      return tl::unexpected(noted.error());
    }
    return std::move(deliveries_);
  }

private:
  void read_published(std::size_t stream) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> known;
    for (const auto &[event, line] : events_of(stage_.sender_events()[stream])) {
      if (event["event"] != "delivery.published") continue;
      const auto [at, is_new] =
          known.try_emplace({number_in(event, "sequence"), number_in(event, "attempt")}, deliveries_.size());
      if (is_new) {
        Delivery delivery;
        delivery.stream = stream;
        delivery.operation_id = event.value("operation_id", "");
        delivery.tag = event["tag"].get<std::string>();
        delivery.sender = event["sender"].get<std::string>();
        delivery.sequence = number_in(event, "sequence");
        delivery.attempt = number_in(event, "attempt");
        deliveries_.push_back(std::move(delivery));
      }
      deliveries_[at->second].published = event["at_us"].get<Micros>(); // the last, where a pipe was full
    }
  }

  // Those of the job that an event speaks of, by publish time.
  [[nodiscard]] const std::vector<Delivery *> &deliveries_of(const Json &event) {
    return by_sequence_[{event["sender"].get<std::string>(), number_in(event, "sequence")}];
  }

  // The delivery that the worker speaks of: of those published by then under this name, the latest. A resumed sender
  // counts its attempts anew.
  Delivery *find(const Json &event) {
    Delivery *found = nullptr;
    for (Delivery *delivery : deliveries_of(event)) {
      if (delivery->published > event["at_us"].get<Micros>()) break;
      if (delivery->attempt == event["attempt"] && delivery->tag == event["tag"]) found = delivery;
    }
    return found;
  }

  void read_worker() {
    for (const auto &[event, line] : events_of(stage_.worker_events())) {
      const bool settled = event["event"] == "delivery.settled";
      if (!settled && event["event"] != "delivery.consumed") continue;
      Delivery *delivery = find(event);
      if (delivery == nullptr) continue;
      if (!settled) delivery->consumed = event["at_us"].get<Micros>();
      if (!settled) continue;
      delivery->settled = event["at_us"].get<Micros>();
      delivery->outcome = event["outcome"].get<std::string>();
      delivery->log = line;
    }
  }

  // A reply names no attempt: it answers the last that was settled so by then. Where the worker has told nothing, it is
  // the last that was published and has no outcome yet.
  Delivery *answered_by(const Json &event, std::size_t stream) {
    const auto at = event["at_us"].get<Micros>();
    Delivery *settled_so = nullptr;
    Delivery *open = nullptr;
    for (Delivery *delivery : deliveries_of(event)) {
      if (delivery->published > at) break;
      if (delivery->stream != stream) continue;
      const bool settled = delivery->settled != 0 && delivery->settled <= at;
      if (settled && delivery->outcome == event["outcome"]) settled_so = delivery;
      if (delivery->outcome.empty()) open = delivery;
    }
    return settled_so != nullptr ? settled_so : open;
  }

  // A reply that the sender has thrown away tells us, and not the sender, what became of the delivery.
  void read_replies(std::size_t stream) {
    for (const auto &[event, line] : events_of(stage_.sender_events()[stream])) {
      const bool acknowledged = event["event"] == "delivery.acknowledged";
      if (!acknowledged && event["event"] != "reply.lost") continue;
      Delivery *answered = answered_by(event, stream);
      if (answered == nullptr) continue;
      if (acknowledged) answered->acknowledged = event["at_us"].get<Micros>();
      if (answered->outcome.empty()) answered->outcome = event["outcome"].get<std::string>();
      if (answered->log.empty()) answered->log = line;
    }
  }

  // What was in hand of a process as it was killed.
  void note_kills() {
    for (const Kill &kill : stage_.kills()) {
      const Micros began = micros_of(kill.child->started_at());
      const Micros ended = micros_of(kill.child->ended_at());
      const bool of_worker = kill.child->role() == "worker";
      for (Delivery &delivery : deliveries_) {
        const bool by_worker = of_worker && !stage_.setting().is_foreign();
        const Micros taken = by_worker ? delivery.consumed : delivery.published;
        const bool open = by_worker ? delivery.settled == 0 : delivery.acknowledged == 0;
        if (open && taken >= began && taken <= ended && taken != 0) delivery.killed = kill.point;
      }
    }
  }

  // Of each job that was sent, the row says when it was committed; so it does where the worker died right after.
  Result<void> note_commits() {
    auto lock = DirectoryLock::take(stage_.data(), DirectoryLock::Mode::shared);
    if (!lock) return tl::unexpected(lock.error());
    SystemRandom random;
    StoreOptions options;
    options.directory = stage_.data();
    options.read_only = true;
    const auto store = Store::open(options, stage_.setting().patience.clock(), random);
    if (!store) return tl::unexpected(store.error());
    JobParser parser;
    Job job;
    Key key;
    for (const std::string &line : stage_.jobs()) {
      std::string bytes;
      nlohmann::json::to_msgpack(nlohmann::json::parse(line), bytes);
      if (!parser.parse(bytes, job)) continue;
      assign_key(job, key);
      const auto row = (*store)->get(key);
      if (!row) return tl::unexpected(row.error());
      if (*row) note_commit(job.operation_id, micros_of((*row)->committed_at));
    }
    return {};
  }

  void note_commit(const std::string &operation_id, Micros committed) {
    for (Delivery *delivery : by_operation_[operation_id]) {
      const bool stored = delivery->outcome == "stored";
      const bool died_after = delivery->settled == 0 && delivery->consumed != 0 && committed >= delivery->consumed &&
                              delivery->killed == name_of(KillPoint::worker_after_commit);
      if (stored || died_after) delivery->committed = committed;
    }
  }

  // A mark is an effect: of the first delivery of its job that may have had it, and rather of one that says so.
  void note_marks() {
    for (const Mark &mark : stage_.marks()) {
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

  Stage &stage_;
  std::vector<Delivery> deliveries_; // by publish time; not moved once the next point into it
  std::map<std::pair<std::string, std::uint64_t>, std::vector<Delivery *>> by_sequence_;
  std::map<std::string, std::vector<Delivery *>> by_operation_;
};

} // namespace

std::vector<std::pair<Json, std::string>> events_of(const std::filesystem::path &stream) {
  std::vector<std::pair<Json, std::string>> events;
  std::ifstream file(stream);
  for (std::string line; std::getline(file, line);) {
    Json event = parse_json(line);
    if (event.is_object() && event.contains("event") && event.contains("at_us"))
      events.emplace_back(std::move(event), line);
  }
  return events;
}

Result<std::vector<Delivery>> join_deliveries(Stage &stage) {
  return Joiner(stage).join();
}

} // namespace onced::rehearsal
