#include "runner/runner_context.hpp"

namespace onced::runner {
namespace {

constexpr std::string_view locks_folder = "handler-locks";

} // namespace

RunnerContext::RunnerContext(const RunnerOptions &options, const Handlers &handlers_of_worker,
                             store::StoreKeeper &store_keeper, Clock &its_clock, Random &random, EventLog &its_log,
                             QueueCounters &its_counters, std::function<void(const JobEnd &)> when_a_job_ends)
    : handlers(handlers_of_worker), keeper(store_keeper), clock(its_clock), log(its_log), counters(its_counters),
      schedule(handlers, options.boot, clock, random, options.cut_heartbeats, options.jobs_in_memory),
      locks(options.directory / locks_folder), descriptors_max(options.descriptors_max),
      on_end(std::move(when_a_job_ends)) {}

} // namespace onced::runner
