#include "runner/runner.hpp"

#include <string>

#include "runner/job_lock.hpp"

namespace onced::runner {
namespace {

constexpr std::string_view locks_folder = "handler-locks";

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
      locks_(options.directory / locks_folder),
      context_{
          handlers,       keeper,           clock, log, counters, board_, locks_, conversion_, options.descriptors_max,
          stop_commands_, std::move(on_end)},
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

Result<void> Runner::prepare() {
  if (executors_ == 0) return {};
  return locks_.prepare();
}

void Runner::run_executor(unsigned number) {
  for (const auto &[name, type] : context_.handlers.queued_types()) {
    if (!has_handler(type)) continue;
    if (number < type.concurrency) return Executor(context_, name).run();
    number -= type.concurrency;
  }
}

void Runner::drain(std::chrono::milliseconds run_on) {
  board_.drain(run_on);
  if (board_.stop_if_due()) stop_commands_.ring();
}

} // namespace onced::runner
