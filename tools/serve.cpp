#include "serve.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <sys/prctl.h>
#include <unistd.h>

#include "event_file.hpp"
#include "line_queue.hpp"
#include "output.hpp"
#include "resources.hpp"
#include "signals.hpp"

namespace onced::tools {
namespace {

// Joins a signal, which may come at any time, to the worker, which may not be there yet.
class Drain {
public:
  void ask() {
    const std::scoped_lock lock(mutex_);
    asked_ = true;
    if (worker_ != nullptr) worker_->drain();
  }
  [[nodiscard]] bool asked() {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }
  void attach(Worker *worker) {
    const std::scoped_lock lock(mutex_);
    worker_ = worker;
    if (asked_ && worker_ != nullptr) worker_->drain();
  }

private:
  std::mutex mutex_;
  Worker *worker_ = nullptr;
  bool asked_ = false;
};

// A command that reads the directory (`count --data`) holds it for as long as its scan takes.
constexpr std::chrono::seconds readers_patience{30};
constexpr std::chrono::milliseconds pause_between_readers{20};

// Whether the directory is held by commands that read it, and by no worker.
bool held_by_readers(const std::filesystem::path &directory) {
  return DirectoryLock::take(directory, DirectoryLock::Mode::shared).has_value();
}

// Starts the worker, after the commands that happen to read its directory have ended.
Result<std::unique_ptr<Worker>> start(const WorkerOptions &options, const Handlers &handlers, Drain &drain,
                                      Clock &clock, Random &random, EventLog &log) {
  const MonotonicTime give_up = clock.monotonic() + readers_patience;
  for (bool told = false;; told = true) {
    auto worker = Worker::start(options, handlers, clock, random, log);
    if (worker || worker.error().code != ErrorCode::locked) return worker;
    const bool wait = held_by_readers(options.store.directory) && !drain.asked() && clock.monotonic() < give_up;
    if (!wait) return worker;
    if (!told) log.write({EventLevel::info, "directory.read", {{"directory", options.store.directory.string()}}});
    std::this_thread::sleep_for(pause_between_readers);
  }
}

// The store keeps up to 512 tables open, and each connection takes a descriptor.
constexpr std::uint64_t descriptors_min = 1024;

// Of the libraries: ZeroMQ has two a context, and RocksDB two for flushes and compactions, and some while it opens.
constexpr unsigned library_threads = 8;
// Gateway, queries, keeper of the store, keeper of the time, relay.
constexpr unsigned own_threads = 5;
// A sender of its own to each, with ZeroMQ's.
constexpr unsigned threads_a_relay = 3;

Needs needs_of(const WorkerOptions &options, const Handlers &handlers) {
  unsigned executors = 0;
  for (const auto &[name, type] : handlers.queued_types())
    executors += type.concurrency;
  const auto relays = static_cast<unsigned>(options.relays.size());
  return {.threads = own_threads + library_threads + options.threads + executors + relays * threads_a_relay,
          .descriptors = descriptors_min,
          .memory_bytes = options.memory_bytes};
}

Result<Handlers> all_handlers(const std::vector<QueuedType> &queued) {
  Handlers handlers = built_in_handlers();
  for (const QueuedType &type : queued) {
    if (auto added = handlers.add_queued(type); !added) return tl::unexpected(added.error());
  }
  return handlers;
}

Json ready_line(const Worker &worker, const WorkerLab &lab) {
  Json line{{"event", "ready"},
            {"jobs", worker.jobs_endpoint()},
            {"replies", worker.replies_endpoint()},
            {"boot", to_hex(worker.boot().view())},
            {"durability", name_of(worker.durability())}};
  if (lab.drop_share > 0 || lab.delay.count() > 0 || lab.delay_commit.count() > 0 || lab.cut_heartbeats) {
    line["drop_replies"] = lab.drop_share;
    line["delay_replies_ms"] = lab.delay.count();
    line["delay_commit_ms"] = lab.delay_commit.count();
    line["cut_heartbeats"] = lab.cut_heartbeats;
    line["seed"] = lab.seed;
  }
  return line;
}

// The two lines of a worker on standard output. The worker goes on while nobody reads them; an output that cannot be
// written drains it.
class OwnLines {
public:
  explicit OwnLines(Drain &drain)
      : lines_(STDOUT_FILENO, [this, &drain](int failure) {
          failure_ = failure;
          drain.ask();
        }) {}

  void line(const Json &object) { complete_ = lines_.put(dump(object) + "\n") && complete_; }

  // Once there are no more. Errors: `store_unavailable`.
  [[nodiscard]] Result<void> close() {
    if (lines_.close(output_patience) && complete_) return {};
    const int failure = failure_.load();
    return tl::unexpected(Error{ErrorCode::store_unavailable, "standard output",
                                failure == 0 ? "nobody reads it" : std::generic_category().message(failure),
                                "what was printed is incomplete; give an output that takes it"});
  }

private:
  std::atomic<int> failure_{0};
  bool complete_ = true;
  LineQueue lines_; // last: its thread uses the rest
};

// Says that it is ready, waits for the end, and says so.
ExitCode attend(Worker &worker, const WorkerLab &lab, Drain &drain, EventLog &log) {
  OwnLines lines(drain);
  lines.line(ready_line(worker, lab));
  if (const auto ended = worker.wait(); !ended) {
    // Why is in the worker's own event, `worker.failed`.
    log.write({EventLevel::error, "worker.stopped", {{"code", std::string(name_of(ended.error().code))}}});
    return exit_code_of(ended.error().code);
  }
  lines.line({{"event", "stopped"}});
  const auto told = lines.close();
  return told ? ExitCode::ok : report(told.error());
}

// A handler, and whatever it lets run, could else read this process's environment and memory (/proc/PID/environ).
void close_to_others(bool allow_core) {
  if (!allow_core) ::prctl(PR_SET_DUMPABLE, 0);
}

// The file is opened anew, as it may have been moved away.
void reopen(EventFile *events, EventLog &log) {
  if (events == nullptr) return log.write({EventLevel::info, "worker.hangup", {}});
  const auto reopened = events->reopen();
  if (reopened) return log.write({EventLevel::info, "worker.hangup", {{"reopened", true}}});
  log.write({EventLevel::error, "worker.hangup", {{"reopened", false}, {"cause", describe(reopened.error())}}});
}

} // namespace

ExitCode run_serve(const ServeOptions &options) {
  close_to_others(options.allow_core);
  const auto handlers = all_handlers(options.handlers);
  if (!handlers) return report(handlers.error());
  const auto given_descriptors = take_resources(needs_of(options.worker, *handlers));
  if (!given_descriptors) return lacking(given_descriptors.error());
  if (::access("/proc/self/fd", F_OK) != 0) {
    return lacking(
        "/proc: it is not mounted, and control.sock is reached through it; mount it (mount -t proc proc /proc)");
  }
  SystemClock clock;
  SystemRandom random;
  ConsoleLog log(options.log_format, clock);
  const auto events = EventFile::open(options.events, clock);
  if (!events) return report(events.error());
  Drain drain;
  const SignalWatch signals(
      [&](int number) {
        log.write({EventLevel::info, "worker.draining", {{"signal", std::int64_t{number}}}});
        drain.ask();
      },
      [&] { reopen(events->get(), log); });
  if (options.worker.store.durability == Durability::page_cache) {
    log.write({EventLevel::warning,
               "durability.weak",
               {{"durability", std::string(name_of(Durability::page_cache))},
                {"risk", std::string("a power cut may lose acknowledged results")}}});
  }
  WorkerOptions worker_options = options.worker;
  worker_options.handler_descriptors_max = *given_descriptors;
  worker_options.deliveries = events->get();
  std::optional<BothLogs> both;
  if (*events) both.emplace(log, **events);
  EventLog &all = both ? static_cast<EventLog &>(*both) : log;
  const auto worker = start(worker_options, *handlers, drain, clock, random, all);
  if (!worker) return report(worker.error());
  drain.attach(worker->get());
  const ExitCode code = attend(**worker, options.worker.lab, drain, log);
  drain.attach(nullptr);
  if (*events) (*events)->tell_dropped_to(log);
  return code;
}

} // namespace onced::tools
