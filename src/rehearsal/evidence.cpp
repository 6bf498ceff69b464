#include "rehearsal/evidence.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <tuple>

#include "onced/digest.hpp"
#include "onced/job.hpp"
#include "onced/store.hpp"

namespace onced::rehearsal {
namespace {

using Micros = std::int64_t;

Micros micros_of(WallTime time) {
  return time.time_since_epoch().count();
}

WallTime time_of(Micros micros) {
  return WallTime(std::chrono::microseconds(micros));
}

constexpr std::array<std::string_view, 14> columns{
    "scenario",  "operation_id", "tag",                "sender",       "sequence", "attempt", "publish_at", "consume_at",
    "commit_at", "acknowledgement_at", "rows_written", "outcome", "killed",  "log"};

// One delivery, while it is put together.
struct Delivery {
  std::size_t stream = 0; // of which sender process
  std::string operation_id;
  std::string tag;
  std::string sender;
  std::uint64_t sequence = 0;
  std::uint64_t attempt = 0;
  Micros published = 0;
  Micros consumed = 0; // 0 in these: not
  Micros settled = 0;
  Micros committed = 0;
  Micros acknowledged = 0;
  std::string outcome;
  std::string killed;
  std::string log;
};

std::vector<std::pair<Json, std::string>> events_of(const std::filesystem::path &path) {
  std::vector<std::pair<Json, std::string>> events;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Json event = Json::parse(line, nullptr, false);
    if (event.is_object()) events.emplace_back(std::move(event), line);
  }
  return events;
}

std::uint64_t number_in(const Json &event, const char *name) {
  return event.at(name).get<std::uint64_t>();
}

class Joiner {
public:
  explicit Joiner(Stage &stage) : stage_(stage) {}

  Result<Evidence> join() {
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
    read_worker();
    for (std::size_t stream = 0; stream < stage_.sender_events().size(); ++stream)
      read_acknowledged(stream);
    note_kills();
    if (auto noted = stage_.setting().is_foreign() ? note_marks() : note_commits(); !noted) {
      return tl::unexpected(noted.error());
    }
    Evidence evidence;
    for (const Delivery &delivery : deliveries_)
      evidence.rows.push_back(row_of(delivery));
    evidence.timeline = timeline();
    evidence.recovery_ms = recoveries();
    return evidence;
  }

private:
  void read_published(std::size_t stream) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> known;
    for (const auto &[event, line] : events_of(stage_.sender_events()[stream])) {
      if (event["event"] != "delivery.published") continue;
      const auto [at, is_new] = known.try_emplace({number_in(event, "sequence"), number_in(event, "attempt")}, deliveries_.size());
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

  // The delivery that the worker speaks of: of those published by then under this name, the latest. A resumed sender
  // counts its attempts anew.
  Delivery *find(const Json &event) {
    Delivery *found = nullptr;
    for (Delivery &delivery : deliveries_) {
      if (delivery.published > event["at_us"].get<Micros>()) break;
      if (delivery.sender == event["sender"] && delivery.sequence == event["sequence"] &&
          delivery.attempt == event["attempt"] && delivery.tag == event["tag"]) {
        found = &delivery;
      }
    }
    return found;
  }

  void read_worker() {
    for (const auto &[event, line] : events_of(stage_.worker_events())) {
      Delivery *delivery = find(event);
      if (delivery == nullptr) continue;
      if (event["event"] == "delivery.consumed") delivery->consumed = event["at_us"].get<Micros>();
      if (event["event"] != "delivery.settled") continue;
      delivery->settled = event["at_us"].get<Micros>();
      delivery->outcome = event["outcome"].get<std::string>();
      delivery->log = line;
    }
  }

  // A reply names no attempt: it answers the last that was settled so by then, or else the last.
  void read_acknowledged(std::size_t stream) {
    for (const auto &[event, line] : events_of(stage_.sender_events()[stream])) {
      if (event["event"] != "delivery.acknowledged") continue;
      Delivery *answered = nullptr;
      for (Delivery &delivery : deliveries_) {
        if (delivery.sender != event["sender"] || delivery.stream != stream || delivery.sequence != event["sequence"]) {
          continue;
        }
        const bool settled_so = delivery.settled != 0 && delivery.outcome == event["outcome"] &&
                                delivery.settled <= event["at_us"].get<Micros>();
        if (answered == nullptr || answered->outcome != event["outcome"] || settled_so) answered = &delivery;
      }
      if (answered == nullptr) continue;
      answered->acknowledged = event["at_us"].get<Micros>();
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
    const auto store = Store::open(options, stage_.setting().clock, random);
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
    for (Delivery &delivery : deliveries_) {
      if (delivery.operation_id != operation_id) continue;
      const bool stored = delivery.outcome == "stored";
      const bool died_after = delivery.settled == 0 && !delivery.killed.empty() && delivery.consumed != 0 &&
                              committed >= delivery.consumed && delivery.killed == "worker.after-commit";
      if (stored || died_after) delivery.committed = committed;
    }
  }

  Result<void> note_marks() {
    for (const Mark &mark : stage_.marks()) {
      for (Delivery &delivery : deliveries_) {
        const bool stored = delivery.outcome == "stored" || !delivery.killed.empty();
        if (delivery.operation_id == mark.operation_id && stored && delivery.published <= micros_of(mark.at) &&
            delivery.committed == 0) {
          delivery.committed = micros_of(mark.at);
          break;
        }
      }
    }
    return {};
  }

  static Json time_or_null(Micros micros) { return micros == 0 ? Json() : Json(iso_time(time_of(micros))); }
  static Json text_or_null(const std::string &text) { return text.empty() ? Json() : Json(text); }

  Json row_of(const Delivery &delivery) const {
    Json written;
    if (delivery.committed != 0 || delivery.outcome == "stored") {
      written = 1;
    } else if (!delivery.outcome.empty() || delivery.killed == "worker.before-commit") {
      written = 0;
    }
    return {{"scenario", stage_.scenario().name},
            {"operation_id", text_or_null(delivery.operation_id)},
            {"tag", text_or_null(delivery.tag)},
            {"sender", text_or_null(delivery.sender)},
            {"sequence", delivery.sequence},
            {"attempt", delivery.attempt},
            {"publish_at", time_or_null(delivery.published)},
            {"consume_at", time_or_null(delivery.consumed)},
            {"commit_at", time_or_null(delivery.committed)},
            {"acknowledgement_at", time_or_null(delivery.acknowledged)},
            {"rows_written", written},
            {"outcome", text_or_null(delivery.outcome)},
            {"killed", text_or_null(delivery.killed)},
            {"log", text_or_null(delivery.log)}};
  }

  // --- The timeline ----------------------------------------------------------------------------------------------

  [[nodiscard]] std::vector<Json> timeline() const {
    std::vector<Json> line;
    if (stage_.kills().empty() || deliveries_.empty()) return line;
    auto first = std::find_if(deliveries_.begin(), deliveries_.end(),
                              [](const Delivery &delivery) { return !delivery.killed.empty(); });
    if (first == deliveries_.end()) first = deliveries_.begin();
    const auto add = [&](Micros at, const std::string &what, const Delivery *delivery, const std::string &detail) {
      if (at == 0) return;
      line.push_back({{"at", iso_time(time_of(at))},
                      {"at_us", at},
                      {"what", what},
                      {"operation_id", delivery == nullptr ? Json() : Json(delivery->operation_id)},
                      {"attempt", delivery == nullptr ? Json() : Json(delivery->attempt)},
                      {"detail", detail}});
    };
    for (const auto &child : stage_.children()) {
      const bool again = child->role() == "worker" && child.get() != first_worker();
      add(micros_of(child->started_at()), again ? "restart" : "start", nullptr, child->role());
      const bool killed = child->was_killed();
      add(micros_of(child->ended_at()), killed ? "kill" : "end", nullptr, child->role() + ", " + child->end());
    }
    bool published = false;
    for (const Delivery &delivery : deliveries_) {
      if (delivery.operation_id != first->operation_id) continue;
      add(delivery.published, published ? "redelivery" : "publish", &delivery, "");
      published = true;
      add(delivery.consumed, "consume", &delivery, "");
      add(delivery.committed, "commit", &delivery, "");
      add(delivery.acknowledged, "acknowledgement", &delivery, delivery.outcome);
    }
    std::stable_sort(line.begin(), line.end(),
                     [](const Json &one, const Json &other) { return one["at_us"] < other["at_us"]; });
    return line;
  }

  [[nodiscard]] const Child *first_worker() const {
    for (const auto &child : stage_.children()) {
      if (child->role() == "worker") return child.get();
    }
    return nullptr;
  }

  [[nodiscard]] std::vector<double> recoveries() const {
    std::vector<double> times;
    for (const Kill &kill : stage_.kills()) {
      const Micros killed = micros_of(kill.child->ended_at());
      Micros recovered = 0;
      for (const Delivery &delivery : deliveries_) {
        if (delivery.acknowledged <= killed) continue;
        recovered = recovered == 0 ? delivery.acknowledged : std::min(recovered, delivery.acknowledged);
      }
      if (recovered != 0) times.push_back(static_cast<double>(recovered - killed) / 1000);
    }
    return times;
  }

  Stage &stage_;
  std::vector<Delivery> deliveries_; // by publish time
};

std::string cell_of(const Json &value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  // A spreadsheet would run it.
  if (!text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos) text.insert(0, "'");
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text)
    quoted.append(character == '"' ? 2 : 1, character);
  return quoted + '"';
}

} // namespace

Result<Evidence> gather_evidence(Stage &stage) {
  return Joiner(stage).join();
}

std::string iso_time(WallTime time) {
  const Micros micros = micros_of(time);
  const std::time_t seconds = micros / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.", &parts);
  std::string fraction = std::to_string(1'000'000 + micros % 1'000'000);
  return text.data() + fraction.substr(1) + "Z";
}

std::string csv_of(const std::vector<Json> &rows) {
  std::string text;
  for (const std::string_view column : columns)
    text.append(text.empty() ? "" : ",").append(column);
  text += '\n';
  for (const Json &row : rows) {
    std::string line;
    for (const auto &[name, value] : row.items())
      line.append(name == columns.front() ? "" : ",").append(cell_of(value));
    text += line + '\n';
  }
  return text;
}

} // namespace onced::rehearsal
