#include "queue/runner.hpp"

#include <string>
#include <system_error>

#include "queue/job_lock.hpp"

namespace onced::queue {
namespace {

constexpr std::string_view locks_folder = "handler-locks";

Error folder_error(const std::filesystem::path &folder, const std::error_code &error) {
  return {.code = ErrorCode::store_unavailable,
          .concerns = folder.string(),
          .cause = error.message(),
          .remedy = "make the folder usable"};
}

} // namespace

Result<std::unique_ptr<Runner>> Runner::make(const RunnerOptions &options, const Handlers &handlers,
                                             store::StoreKeeper &keeper, Clock &clock, Random &random, EventLog &log,
                                             QueueCounters &counters, std::function<void(const JobEnd &)> on_end) {
  if (auto checked = check(handlers); !checked) return tl::unexpected(checked.error());
  std::unique_ptr<Runner> runner( // its constructor is private
      new Runner(options, handlers, keeper, clock, random, log, counters, std::move(on_end)));
  if (auto prepared = runner->prepare(); !prepared) return tl::unexpected(prepared.error());
  return runner;
}

Runner::Runner(const RunnerOptions &options, const Handlers &handlers, store::StoreKeeper &keeper, Clock &clock,
               Random &random, EventLog &log, QueueCounters &counters, std::function<void(const JobEnd &)> on_end)
    : executors_(executors_of(handlers)),
      board_(handlers, options.boot, clock, random, options.cut_heartbeats, options.jobs_in_memory),
      context_{handlers,
               keeper,
               clock,
               log,
               counters,
               board_,
               options.directory / locks_folder,
               conversion_,
               stop_commands_.descriptor(),
               std::move(on_end)},
      time_keeper_(context_) {}

unsigned Runner::executors_of(const Handlers &handlers) {
  unsigned executors = 0;
  for (const auto &[name, type] : handlers.queued_types()) {
    if (has_handler(type)) executors += type.concurrency;
  }
  return executors;
}

Result<void> Runner::check(const Handlers &handlers) {
  const unsigned executors = executors_of(handlers);
  if (executors <= limits::handler_threads_max) return {};
  return tl::unexpected(Error{.code = ErrorCode::usage,
                              .concerns = "the concurrency of all handlers",
                              .cause = std::to_string(executors) + " threads are too many",
                              .remedy = "let them be " + std::to_string(limits::handler_threads_max) + " together"});
}

// Makes the folder of the locks, and removes those that an earlier process has left and nobody holds.
Result<void> Runner::prepare() {
  if (executors_ == 0) return {};
  std::error_code error;
  std::filesystem::create_directory(context_.locks, error);
  if (error) return tl::unexpected(folder_error(context_.locks, error));
  auto entry = std::filesystem::directory_iterator(context_.locks, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    static_cast<void>(remove_lock(entry->path()));
  if (error) return tl::unexpected(folder_error(context_.locks, error));
  return {};
}

void Runner::run_executor(unsigned number) {
  for (const auto &[name, type] : context_.handlers.queued_types()) {
    if (!has_handler(type)) continue;
    if (number < type.concurrency) return Executor(context_, name).run();
    number -= type.concurrency;
  }
}

void Runner::drain() {
  board_.drain();
  stop_commands_.ring();
}

} // namespace onced::queue
