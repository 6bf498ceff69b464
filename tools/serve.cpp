#include "serve.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <sys/resource.h>

#include "event_file.hpp"
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

// The store keeps up to 512 tables open, a connection takes a descriptor, and ZeroMQ ends the process when there is
// none left.
constexpr rlim_t descriptors_min = 1024;

// Takes all the descriptors that this process may have. Errors: `configuration`.
Result<void> raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
    static_cast<void>(::getrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_cur >= descriptors_min) return {};
  }
  return tl::unexpected(Error{ErrorCode::configuration, "the limit of open files",
                              "this process may open only " + std::to_string(limit.rlim_cur),
                              "raise it to " + std::to_string(descriptors_min) + " or more (ulimit -n, LimitNOFILE=)"});
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

// Says that it is ready, waits for the end, and says so.
ExitCode attend(Worker &worker, const WorkerLab &lab, Drain &drain, EventLog &log, Output &output) {
  output.line(ready_line(worker, lab));
  const auto told = output.flush();
  if (!told) drain.ask();
  if (const auto ended = worker.wait(); !ended) {
    // Why is in the worker's own event, `worker.failed`.
    log.write({EventLevel::error, "worker.stopped", {{"code", std::string(name_of(ended.error().code))}}});
    return exit_code_of(ended.error().code);
  }
  if (!told) return report(told.error());
  output.line({{"event", "stopped"}});
  if (const auto flushed = output.flush(); !flushed) return report(flushed.error());
  return ExitCode::ok;
}

} // namespace

ExitCode run_serve(const ServeOptions &options, Output &output) {
  if (const auto raised = raise_descriptor_limit(); !raised) return report(raised.error());
  const auto handlers = all_handlers(options.handlers);
  if (!handlers) return report(handlers.error());
  SystemClock clock;
  SystemRandom random;
  ConsoleLog log(options.log_format, clock);
  Drain drain;
  const SignalWatch signals([&](int number) {
    log.write({EventLevel::info, "worker.draining", {{"signal", std::int64_t{number}}}});
    drain.ask();
  });
  if (options.worker.store.durability == Durability::page_cache) {
    log.write({EventLevel::warning,
               "durability.weak",
               {{"durability", std::string(name_of(Durability::page_cache))},
                {"risk", std::string("a power cut may lose acknowledged results")}}});
  }
  const auto events = EventFile::open(options.events, clock);
  if (!events) return report(events.error());
  WorkerOptions worker_options = options.worker;
  worker_options.deliveries = events->get();
  std::optional<BothLogs> both;
  if (*events) both.emplace(log, **events);
  EventLog &all = both ? static_cast<EventLog &>(*both) : log;
  const auto worker = start(worker_options, *handlers, drain, clock, random, all);
  if (!worker) return report(worker.error());
  drain.attach(worker->get());
  const ExitCode code = attend(**worker, options.worker.lab, drain, log, output);
  drain.attach(nullptr);
  return code;
}

} // namespace onced::tools
