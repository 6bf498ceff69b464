#include "runner/relay.hpp"

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"
#include "onced/limits.hpp"

namespace onced::runner {
namespace {

using store::RelayBuried;
using store::RelayEntry;
using store::RelayQueue;

// While the store is not available.
constexpr std::chrono::milliseconds store_wait{100};
// With nothing due: somebody will nudge.
constexpr std::chrono::hours idle_wait{1};
// Destinations looked for that are not configured; a spelling mistake is one.
constexpr std::size_t unknown_destinations_max = 64;
// For calls of a sender that must not wait.
constexpr MonotonicTime passed{};

Error unfit(std::string concerns, std::string cause, std::string remedy) {
  return {.code = ErrorCode::usage,
          .concerns = std::move(concerns),
          .cause = std::move(cause),
          .remedy = std::move(remedy)};
}

Event relay_event(EventLevel level, std::string_view name, std::string_view destination) {
  return {.level = level,
          .name = name,
          .fields = {{"destination", utf8::repaired(destination, limits::relay_name_bytes_max)}}};
}

Event relay_event(std::string_view name, std::string_view destination, const Error &error) {
  Event event = relay_event(EventLevel::error, name, destination);
  event.fields.emplace_back("code", std::string(name_of(error.code)));
  event.fields.emplace_back("concerns", error.concerns);
  event.fields.emplace_back("cause", error.cause);
  event.fields.emplace_back("remedy", error.remedy);
  return event;
}

} // namespace

Result<void> check_relays(std::span<const RelayTarget> targets) {
  if (targets.size() > limits::relay_targets_max) {
    return tl::unexpected(unfit("the relays", "there are " + std::to_string(targets.size()),
                                "give at most " + std::to_string(limits::relay_targets_max)));
  }
  std::set<std::string_view> names;
  for (const RelayTarget &target : targets) {
    if (target.name.empty() || target.name.size() > limits::relay_name_bytes_max || !utf8::valid(target.name)) {
      return tl::unexpected(
          unfit("relay \"" + utf8::repaired(target.name, limits::relay_name_bytes_max) + "\"",
                "its name is not 1 to " + std::to_string(limits::relay_name_bytes_max) + " bytes of UTF-8",
                "give it another name"));
    }
    if (!names.insert(target.name).second) {
      return tl::unexpected(unfit("relay \"" + target.name + "\"", "it is there twice", "name each worker once"));
    }
  }
  return {};
}

// One destination, and what is outstanding there.
struct Relay::Destination {
  Destination(RelayTarget to, std::uint64_t seed) : target(std::move(to)), random(seed) {}

  struct Refused {
    Bytes key;
    Outcome outcome = Outcome::failed;
    std::string detail;
  };

  // Room for whatever one read gives.
  [[nodiscard]] bool has_room() const {
    return outstanding.size() + limits::relay_read_jobs <= limits::relay_jobs_in_memory &&
           bytes + limits::relay_read_bytes <= limits::relay_bytes_in_memory;
  }
  void forget(BytesView key) {
    const auto found = outstanding.find(key);
    if (found == outstanding.end()) return;
    bytes -= found->second;
    outstanding.erase(found);
  }
  // When to go on if nobody nudges; no later than `idle`.
  [[nodiscard]] MonotonicTime due(MonotonicTime now, MonotonicTime idle) const {
    if (!sender) idle = std::min(idle, start_at);
    if (!refused.empty()) idle = std::min(idle, bury_at);
    return delivered.empty() ? idle : std::min(idle, now + store_wait);
  }

  RelayTarget target;
  SeededRandom random;            // of the sender
  std::unique_ptr<Sender> sender; // null: not started, or it has failed
  bool failure_told = false;
  bool full_told = false;
  MonotonicTime start_at; // not before this is the sender started
  MonotonicTime bury_at;  // and not before this the refused are tried

  // Keys of rows with the bytes of their jobs: from when it was submitted until the row has left.
  std::map<Bytes, std::size_t, std::less<>> outstanding;
  std::size_t bytes = 0;
  std::map<Sequence, Bytes> sent; // of those, the ones that the sender has not settled
  std::vector<Bytes> delivered;   // and those that it has
  std::vector<Refused> refused;

  // The rows are gone through in the order of their keys, and again where some may have come meanwhile.
  bool look = true;     // from the beginning
  bool passing = false; // from here on
  Bytes after;
};

Relay::Relay(const std::vector<RelayTarget> &targets, store::StoreKeeper &keeper, Clock &clock, Random &random,
             EventLog &log, RelayCounters &counters)
    : keeper_(keeper), clock_(clock), log_(log), counters_(counters) {
  for (const RelayTarget &target : targets)
    destinations_.push_back(std::make_unique<Destination>(target, random.next()));
}

Relay::~Relay() = default;

// --- Other threads --------------------------------------------------------------------------------------------------

void Relay::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void Relay::wake() {
  nudge(true);
}

void Relay::nudge(bool look) {
  {
    const std::scoped_lock lock(mutex_);
    nudged_ = true;
    look_ = look_ || look;
  }
  changed_.notify_all();
}

bool Relay::is_stopping() {
  const std::scoped_lock lock(mutex_);
  return stopping_;
}

// --- The relay's thread ---------------------------------------------------------------------------------------------

void Relay::run() {
  MonotonicTime due = clock_.monotonic();
  while (true) {
    bool look = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, due, [&] { return stopping_ || nudged_; });
      if (stopping_) break;
      nudged_ = false;
      look = std::exchange(look_, false);
    }
    due = work(look);
  }
  for (const auto &destination : destinations_)
    destination->sender.reset();
}

// One turn. Returns when the next is due, if nobody nudges before.
MonotonicTime Relay::work(bool look) {
  for (const auto &destination : destinations_) {
    if (look) destination->look = true;
    if (look) destination->bury_at = {}; // there may be room by now
    start_sender(*destination);
    take_settled(*destination);
  }
  looks_for_unknown_ = looks_for_unknown_ || look;
  const auto store = keeper_.try_lease();
  const MonotonicTime now = clock_.monotonic();
  if (!store) return now + store_wait;
  auto worked = look_for_unknown(store->relay());
  MonotonicTime due = now + idle_wait;
  for (const auto &destination : destinations_) {
    if (!worked || is_stopping()) break;
    worked = work_on(store->relay(), *destination);
    due = destination->due(now, due);
  }
  if (worked) return due;
  keeper_.report(worked.error());
  return now + store_wait;
}

Result<void> Relay::work_on(RelayQueue &rows, Destination &destination) {
  if (auto removed = remove_delivered(rows, destination); !removed) return removed;
  if (auto buried = bury_refused(rows, destination); !buried) return buried;
  return submit_waiting(rows, destination);
}

// A row that stays although nobody sends it on must not stay unnoticed.
Result<void> Relay::look_for_unknown(RelayQueue &rows) {
  if (!looks_for_unknown_) return {};
  const auto names = rows.destinations(unknown_destinations_max + limits::relay_targets_max);
  if (!names) return check_read(names.error(), {});
  looks_for_unknown_ = false;
  std::uint64_t unknown = 0;
  for (const std::string &name : *names) {
    const auto is_it = [&](const auto &destination) { return destination->target.name == name; };
    if (std::any_of(destinations_.begin(), destinations_.end(), is_it)) continue;
    ++unknown;
    if (unknown_.size() >= unknown_destinations_max || !unknown_.insert(name).second) continue;
    log_.write(relay_event(EventLevel::warning, "relay.unknown_destination", name));
  }
  counters_.relay_unknown_destinations = unknown;
  return {};
}

// An error of reading that opening the store again does not mend is told, and costs nobody else anything.
Result<void> Relay::check_read(const Error &error, std::string_view destination) {
  if (error.code == ErrorCode::store_unavailable) return tl::unexpected(error);
  log_.write(relay_event("relay.unreadable", destination, error));
  return {};
}

// --- Its senders ----------------------------------------------------------------------------------------------------

void Relay::start_sender(Destination &destination) {
  if (destination.sender || clock_.monotonic() < destination.start_at) return;
  SenderOptions options;
  options.jobs_endpoint = destination.target.jobs_endpoint;
  options.replies_endpoint = destination.target.replies_endpoint;
  options.on_settled = [this] { nudge(false); };
  auto sender = Sender::start(options, clock_, destination.random, log_);
  if (!sender) return fail_sender(destination, sender.error());
  destination.sender = std::move(*sender);
}

// What it had not settled is still in the store, and is submitted to the next one.
void Relay::fail_sender(Destination &destination, const Error &error) {
  if (!destination.failure_told) log_.write(relay_event("relay.sender_failed", destination.target.name, error));
  destination.failure_told = true;
  destination.sender.reset();
  destination.start_at = clock_.monotonic() + limits::relay_retry;
  for (const auto &[sequence, key] : destination.sent)
    destination.forget(key);
  destination.sent.clear();
  destination.look = true;
}

void Relay::take_settled(Destination &destination) {
  while (destination.sender) {
    auto settled = destination.sender->next_settled(passed, limits::relay_read_jobs);
    if (!settled && settled.error().code == ErrorCode::timed_out) return;
    if (!settled) return fail_sender(destination, settled.error());
    destination.failure_told = false;
    for (Settled &job : *settled) {
      auto sent = destination.sent.extract(job.sequence);
      if (sent.empty()) continue;
      if (traits_of(job.outcome).success) {
        destination.delivered.push_back(std::move(sent.mapped()));
      } else {
        destination.refused.push_back({std::move(sent.mapped()), job.outcome, std::move(job.detail)});
      }
    }
  }
}

// --- Their outcomes -------------------------------------------------------------------------------------------------

Result<void> Relay::remove_delivered(RelayQueue &rows, Destination &destination) {
  while (!destination.delivered.empty()) {
    const std::size_t count = std::min(destination.delivered.size(), limits::relay_read_jobs);
    const auto first = destination.delivered.end() - static_cast<std::ptrdiff_t>(count);
    const auto removed = rows.remove(std::span(first, destination.delivered.end()));
    if (!removed) return tl::unexpected(removed.error());
    if (!*removed) return {}; // soon again
    for (auto key = first; key != destination.delivered.end(); ++key)
      destination.forget(*key);
    destination.delivered.erase(first, destination.delivered.end());
    counters_.relayed += count;
  }
  return {};
}

Result<void> Relay::bury_refused(RelayQueue &rows, Destination &destination) {
  while (!destination.refused.empty() && clock_.monotonic() >= destination.bury_at) {
    const Destination::Refused &refused = destination.refused.back();
    const auto buried = rows.bury(refused.key, refused.outcome, refused.detail);
    if (!buried) return tl::unexpected(buried.error());
    if (*buried == RelayBuried::busy) {
      if (!std::exchange(destination.full_told, true)) {
        log_.write(relay_event(EventLevel::warning, "relay.no_room_for_dead_letters", destination.target.name));
      }
      destination.bury_at = clock_.monotonic() + limits::relay_retry;
      return {};
    }
    if (*buried == RelayBuried::buried) ++counters_.relay_refused;
    destination.full_told = false;
    destination.forget(refused.key);
    destination.refused.pop_back();
  }
  return {};
}

// --- What waits -----------------------------------------------------------------------------------------------------

Result<void> Relay::submit_waiting(RelayQueue &rows, Destination &destination) {
  while (destination.sender && destination.has_room() && (destination.passing || destination.look)) {
    if (!destination.passing) {
      destination.passing = true;
      destination.look = false;
      destination.after.clear();
    }
    auto page = rows.page(destination.target.name, destination.after, limits::relay_read_jobs);
    if (!page) {
      destination.passing = false; // until somebody wakes
      return check_read(page.error(), destination.target.name);
    }
    destination.passing = page->next.has_value();
    if (page->next) destination.after = std::move(*page->next);
    submit(destination, std::move(page->entries));
  }
  return {};
}

void Relay::submit(Destination &destination, std::vector<RelayEntry> entries) {
  std::erase_if(entries, [&](const RelayEntry &entry) { return destination.outstanding.contains(entry.key); });
  if (entries.empty()) return;
  std::vector<Bytes> jobs;
  std::vector<std::size_t> sizes;
  for (RelayEntry &entry : entries) {
    sizes.push_back(entry.row.job.size());
    jobs.push_back(std::move(entry.row.job));
  }
  const auto sequences = destination.sender->submit(std::move(jobs), passed);
  if (!sequences && sequences.error().code == ErrorCode::timed_out) {
    destination.look = true; // it is full of outcomes, and nudges
    return;
  }
  if (!sequences) return fail_sender(destination, sequences.error());
  for (std::size_t at = 0; at < entries.size(); ++at) {
    destination.sent.emplace((*sequences)[at], entries[at].key);
    destination.outstanding.emplace(std::move(entries[at].key), sizes[at]);
    destination.bytes += sizes[at];
  }
}

} // namespace onced::runner
