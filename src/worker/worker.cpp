#include "onced/worker.hpp"

#include <csignal>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include "onced/fencing_token.hpp"
#include "onced/limits.hpp"
#include "runner/executor.hpp"
#include "runner/relay.hpp"
#include "runner/runner_context.hpp"
#include "runner/time_keeper.hpp"
#include "store/store_keeper.hpp"
#include "wire/control_endpoint.hpp"
#include "wire/endpoint.hpp"
#include "wire/endpoint_lock.hpp"
#include "wire/sockets.hpp"
#include "worker/batch_thread.hpp"
#include "worker/counters.hpp"
#include "worker/gateway.hpp"
#include "worker/handover.hpp"
#include "worker/late_replies.hpp"
#include "worker/memory_plan.hpp"
#include "worker/outgoing.hpp"
#include "worker/query_threads.hpp"

namespace onced {

using store::StoreKeeper;
using worker::BatchThread;
using worker::Gateway;
using worker::Handover;
using worker::Outgoing;
using worker::QueryThreads;

namespace {

// Blocks every signal in the threads started during its life: signals are the program's business (cppzmq throws on
// EINTR).
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked &) = delete;
  SignalsBlocked &operator=(const SignalsBlocked &) = delete;

private:
  sigset_t before_{};
};

Result<void> check_endpoints(const WorkerOptions &options) {
  // One with `*` becomes another each time.
  if (options.jobs_endpoint == options.replies_endpoint && options.jobs_endpoint.find('*') == std::string::npos) {
    return tl::unexpected(Error{.code = ErrorCode::usage,
                                .concerns = options.jobs_endpoint,
                                .cause = "jobs and replies have the same endpoint",
                                .remedy = "give each its own, tcp://127.0.0.1:5570 and tcp://127.0.0.1:5571 say"});
  }
  for (const std::string *endpoint : {&options.jobs_endpoint, &options.replies_endpoint}) {
    if (const auto read = wire::read_endpoint(*endpoint, wire::EndpointUse::bind); !read) {
      return tl::unexpected(read.error());
    }
  }
  for (const RelayTarget &target : options.relays) {
    for (const std::string *endpoint : {&target.jobs_endpoint, &target.replies_endpoint}) {
      if (const auto read = wire::read_endpoint(*endpoint, wire::EndpointUse::connect); !read) {
        return tl::unexpected(read.error());
      }
    }
  }
  return {};
}

// All that can be wrong with what a worker is given: told before there is a directory or a socket.
Result<void> check(const WorkerOptions &options, const Handlers &handlers) {
  if (options.threads < 1 || options.threads > limits::worker_threads_max) {
    return tl::unexpected(Error{.code = ErrorCode::usage,
                                .concerns = "worker threads",
                                .cause = std::to_string(options.threads) + " is not possible",
                                .remedy = "give 1 to " + std::to_string(limits::worker_threads_max)});
  }
  if (auto checked = runner::check_executors(handlers); !checked) return checked;
  if (auto checked = runner::check_relays(options.relays); !checked) return checked;
  return check_endpoints(options);
}

} // namespace

class Worker::Impl : private StoreObserver {
public:
  Impl(Handlers handlers, Clock &clock, EventLog &log, const KillSwitch &kill_switch)
      : kill_switch_(kill_switch), handlers_(std::move(handlers)), log_(log),
        handover_(clock, [this] { wake_.ring(); }) {}

  ~Impl() override {
    drain();
    static_cast<void>(wait());
  }
  Impl(const Impl &) = delete;
  Impl &operator=(const Impl &) = delete;

  Result<void> start(const WorkerOptions &options, Clock &clock, Random &random);
  void drain();
  Result<void> wait();

  [[nodiscard]] const std::string &jobs_endpoint() const { return jobs_endpoint_; }
  [[nodiscard]] const std::string &replies_endpoint() const { return replies_endpoint_; }
  [[nodiscard]] BootId boot() const { return first_boot_; }
  [[nodiscard]] Durability durability() const { return durability_; }

private:
  Result<void> open_store(const WorkerOptions &options, Clock &clock, Random &random);
  void warn_of_exposed_directory();
  Result<void> bind(const WorkerOptions &options, Clock &clock);
  Result<void> make_runner(const WorkerOptions &options, Clock &clock, Random &random);
  Result<void> start_threads(const WorkerOptions &options);
  void start_batch_threads(const WorkerOptions &options);
  void start_executors();
  void on_store_change();
  void on_job_end(const runner::JobEnd &end);
  void queued(BytesView key, std::string_view type, WallTime accepted_at) override;
  void relayed() override;
  template <class Run> std::thread guarded_thread(Run run);
  void fail(Error error);
  void stop_at_once();
  void log_counters();

  // In the order in which they are needed: the lock is given up last, after the store and every socket.
  std::optional<DirectoryLock> lock_;
  std::optional<wire::ControlEndpoint> control_;
  std::vector<wire::EndpointLock> endpoint_locks_;
  worker::MemoryPlan memory_;
  KillSwitch kill_switch_;
  std::unique_ptr<StoreKeeper> keeper_;
  BootId first_boot_;
  std::chrono::milliseconds drain_timeout_{0};
  Durability durability_ = Durability::fsync;
  Handlers handlers_;
  EventLog &log_;
  worker::Counters counters_;
  zmq::context_t context_;
  Wake wake_;
  Handover handover_;
  Outgoing outgoing_{[this] { wake_.ring(); }};
  worker::LateReplies late_replies_;
  std::unique_ptr<runner::RunnerContext> runner_;
  std::unique_ptr<runner::TimeKeeper> time_keeper_;
  std::unique_ptr<runner::Relay> relay_;
  std::unique_ptr<QueryThreads> queries_;
  std::mutex gateway_mutex_;         // held by `drain` from any thread, and where the next comes and goes
  std::unique_ptr<Gateway> gateway_; // null once the worker has stopped
  std::thread gateway_thread_;
  std::vector<std::thread> query_threads_; // one a lane
  std::thread keeper_thread_;
  std::thread time_keeper_thread_;
  std::thread relay_thread_;
  std::vector<std::thread> batch_threads_;
  std::vector<std::thread> executor_threads_;
  std::string jobs_endpoint_;
  std::string replies_endpoint_;

  std::mutex failure_mutex_;     // guards the next
  std::optional<Error> failure_; // the first
};

Result<void> Worker::Impl::start(const WorkerOptions &options, Clock &clock, Random &random) {
  if (auto checked = check(options, handlers_); !checked) return checked;
  drain_timeout_ = options.drain_timeout;
  const auto memory = worker::plan_memory(options.memory_bytes, options.senders,
                                          {.batch = options.threads,
                                           .executors = static_cast<unsigned>(runner::executor_types(handlers_).size()),
                                           .relays = static_cast<unsigned>(options.relays.size())});
  if (!memory) return tl::unexpected(memory.error());
  memory_ = *memory;
  if (auto opened = open_store(options, clock, random); !opened) return opened;
  if (auto made = make_runner(options, clock, random); !made) return made;
  if (auto bound = bind(options, clock); !bound) return bound;
  return start_threads(options);
}

Result<void> Worker::Impl::open_store(const WorkerOptions &options, Clock &clock, Random &random) {
  auto lock = DirectoryLock::take(options.store.directory, DirectoryLock::Mode::exclusive);
  if (!lock) return tl::unexpected(lock.error());
  lock_.emplace(std::move(*lock));
  if (options.operator_group.empty()) warn_of_exposed_directory();
  StoreOptions store_options = options.store;
  store_options.directory = lock_->directory();
  store_options.lock = &*lock_;
  store_options.block_cache_bytes = memory_.block_cache_bytes;
  store_options.committed_cache_bytes = memory_.committed_cache_bytes;
  store_options.kill_switch = &kill_switch_;
  store_options.delay_commit = options.lab.delay_commit;
  store_options.counters = &counters_;
  store_options.observer = this;
  keeper_ = std::make_unique<StoreKeeper>(
      store_options, clock, random, log_, [this] { on_store_change(); },
      [this](Error error) { fail(std::move(error)); });
  if (auto opened = keeper_->open(); !opened) return opened;
  first_boot_ = keeper_->state().boot;
  durability_ = store_options.durability;
  return {};
}

// Who may read the directory reads the results in it.
void Worker::Impl::warn_of_exposed_directory() {
  std::error_code error;
  const auto rights = std::filesystem::status(lock_->directory(), error).permissions();
  constexpr auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  if (error || (rights & others) == std::filesystem::perms::none) return;
  log_.write({.level = EventLevel::warning,
              .name = "directory.exposed",
              .fields = {{"directory", lock_->directory().string()},
                         {"cause", std::string("others may enter it and read the results in it")},
                         {"remedy", "chmod 700 " + lock_->directory().string()}}});
}

Result<void> Worker::Impl::make_runner(const WorkerOptions &options, Clock &clock, Random &random) {
  const runner::RunnerOptions runner_options{.directory = lock_->directory(),
                                             .boot = boot_count_of(first_boot_),
                                             .cut_heartbeats = options.lab.cut_heartbeats,
                                             .descriptors_max = options.handler_descriptors_max};
  runner_ = std::make_unique<runner::RunnerContext>(runner_options, handlers_, *keeper_, clock, random, log_, counters_,
                                                    [this](const runner::JobEnd &end) { on_job_end(end); });
  time_keeper_ = std::make_unique<runner::TimeKeeper>(*runner_);
  if (!runner::executor_types(handlers_).empty()) {
    if (auto prepared = runner_->locks.prepare(); !prepared) return prepared;
  }
  relay_ = std::make_unique<runner::Relay>(options.relays, *keeper_, clock, random, log_, counters_);
  return {};
}

Result<void> Worker::Impl::bind(const WorkerOptions &options, Clock &clock) {
  for (const std::string &endpoint : {options.replies_endpoint, options.jobs_endpoint}) {
    auto lock = wire::EndpointLock::take(endpoint);
    if (!lock) return tl::unexpected(lock.error());
    endpoint_locks_.push_back(std::move(*lock));
  }
  auto replies = wire::bind_replies(context_, options.replies_endpoint);
  if (!replies) return tl::unexpected(replies.error());
  auto control_endpoint = wire::ControlEndpoint::make(lock_->directory(), options.operator_group);
  if (!control_endpoint) return tl::unexpected(control_endpoint.error());
  control_.emplace(std::move(*control_endpoint));
  auto control = wire::bind_replies(context_, control_->endpoint());
  if (!control) return tl::unexpected(control.error());
  if (auto opened = control_->set_rights(); !opened) return opened;
  auto jobs = wire::bind_jobs(context_, options.jobs_endpoint, memory_.receive_high_water_messages);
  if (!jobs) return tl::unexpected(jobs.error());
  jobs_endpoint_ = wire::bound_endpoint(*jobs);
  replies_endpoint_ = wire::bound_endpoint(*replies);
  queries_ = std::make_unique<QueryThreads>(*keeper_, handlers_, counters_, handover_, outgoing_, runner_->schedule);
  gateway_ = std::make_unique<Gateway>(
      Gateway::Sockets{.jobs = std::move(*jobs), .replies = std::move(*replies), .control = std::move(*control)},
      durability_, *keeper_, handover_, outgoing_, *queries_, wake_, counters_, kill_switch_,
      worker::ReplyLab::of(options.lab, clock, counters_), log_);
  return {};
}

// The gateway's is the last: before it nothing comes in.
Result<void> Worker::Impl::start_threads(const WorkerOptions &options) {
  const SignalsBlocked blocked;
  try {
    start_batch_threads(options);
    keeper_thread_ = guarded_thread([this] { keeper_->run(); });
    for (std::size_t lane = 0; lane < worker::query_lanes; ++lane)
      query_threads_.push_back(guarded_thread([this, lane] { queries_->run(static_cast<worker::QueryLane>(lane)); }));
    relay_thread_ = guarded_thread([this] { relay_->run(); });
    start_executors();
    gateway_thread_ = guarded_thread([this] { gateway_->run(); });
  } catch (const std::system_error &error) {
    stop_at_once();
    return tl::unexpected(Error{.code = ErrorCode::out_of_resources,
                                .concerns = "the threads of the worker",
                                .cause = error.what(),
                                .remedy = "raise the limit of threads of this user or container, or give fewer "
                                          "--workers and a lower concurrency of handlers"});
  }
  return {};
}

void Worker::Impl::start_batch_threads(const WorkerOptions &options) {
  for (unsigned started = 0; started < options.threads; ++started) {
    batch_threads_.push_back(guarded_thread([this, events = worker::DeliveryEvents(options.deliveries)] {
      BatchThread(handover_, outgoing_, *keeper_, handlers_, counters_, kill_switch_, events, late_replies_).run();
    }));
  }
}

void Worker::Impl::start_executors() {
  for (const std::string_view type : runner::executor_types(handlers_))
    executor_threads_.push_back(guarded_thread([this, type] { runner::Executor(*runner_, type).run(); }));
  if (!executor_threads_.empty()) time_keeper_thread_ = guarded_thread([this] { time_keeper_->run(); });
}

// Before the worker has started there is nobody to be told.
void Worker::Impl::on_store_change() {
  wake_.ring();
  if (time_keeper_) time_keeper_->look_again();
  if (relay_) relay_->wake();
}

void Worker::Impl::queued(BytesView key, std::string_view type, WallTime accepted_at) {
  runner_->schedule.announce(key, type, accepted_at);
}

void Worker::Impl::relayed() {
  relay_->wake();
}

void Worker::Impl::on_job_end(const runner::JobEnd &end) {
  auto frames = late_replies_.answer(end, keeper_->state().boot, durability_);
  if (frames.empty()) return;
  if (traits_of(end.outcome).final) counters_.late_replies += frames.size();
  counters_.reply_frames_dropped += outgoing_.put(std::move(frames));
}

// A thread that ends by an exception stops the worker in order: nothing is acknowledged that was not committed.
template <class Run> std::thread Worker::Impl::guarded_thread(Run run) {
  return std::thread([this, run] {
    try {
      run();
    } catch (const std::exception &error) {
      fail({.code = ErrorCode::internal,
            .concerns = "a thread of the worker",
            .cause = error.what(),
            .remedy = "start the worker again, and report this"});
    }
  });
}

void Worker::Impl::fail(Error error) {
  {
    const std::scoped_lock lock(failure_mutex_);
    if (failure_) return;
    failure_ = error;
  }
  log_.write({.level = EventLevel::error,
              .name = "worker.failed",
              .fields = {{"code", std::string(name_of(error.code))},
                         {"concerns", error.concerns},
                         {"cause", error.cause},
                         {"remedy", error.remedy}}});
  stop_at_once();
}

void Worker::Impl::stop_at_once() {
  gateway_->stop_reading();
  handover_.abandon();
  runner_->schedule.drain();
  keeper_->stop();
}

// Nothing moves any more, so the balance holds.
void Worker::Impl::log_counters() {
  Event event{.level = EventLevel::info, .name = "worker.drained", .fields = {}};
  for (const worker::CounterTraits &counter : worker::counter_table)
    event.fields.emplace_back(counter.name, (counters_.*counter.counter).load());
  for (const OutcomeTraits &outcome : outcome_table)
    event.fields.emplace_back(outcome.name, counters_.came_of(outcome.outcome));
  log_.write(event);
}

void Worker::Impl::drain() {
  const std::scoped_lock lock(gateway_mutex_);
  if (!gateway_) return;
  gateway_->stop_reading(); // which closes the hand-over
  runner_->schedule.drain(drain_timeout_);
  keeper_->stop();
}

Result<void> Worker::Impl::wait() {
  // The batch threads end when the hand-over is closed and empty; what they handed out goes before the gateway does.
  for (std::thread &thread : batch_threads_)
    thread.join();
  batch_threads_.clear();
  // And the executors when the handlers in hand have ended: after the drain timeout and their grace period at the
  // latest.
  for (std::thread &thread : executor_threads_)
    thread.join();
  executor_threads_.clear();
  if (time_keeper_thread_.joinable()) {
    time_keeper_->stop();
    time_keeper_thread_.join();
  }
  if (relay_thread_.joinable()) { // what is on its way stays in the store
    relay_->stop();
    relay_thread_.join();
  }
  if (queries_) queries_->close();
  for (std::thread &thread : query_threads_)
    thread.join();
  query_threads_.clear();
  if (keeper_thread_.joinable()) keeper_thread_.join();
  const bool has_run = gateway_thread_.joinable();
  if (has_run) {
    gateway_->finish();
    gateway_thread_.join();
  }
  {
    const std::scoped_lock lock(gateway_mutex_);
    if (has_run) log_counters();
    gateway_.reset(); // closes the sockets
  }
  context_.close(); // waits for replies that are still leaving, as long as they may linger
  if (keeper_) keeper_->close();
  lock_.reset();
  const std::scoped_lock lock(failure_mutex_);
  if (failure_) return tl::unexpected(*failure_);
  return {};
}

Result<std::unique_ptr<Worker>> Worker::start(const WorkerOptions &options, Handlers handlers, Clock &clock,
                                              Random &random, EventLog &log) {
  auto impl = std::make_unique<Impl>(std::move(handlers), clock, log, options.kill_switch);
  if (auto started = impl->start(options, clock, random); !started) return tl::unexpected(started.error());
  return std::unique_ptr<Worker>(new Worker(std::move(impl)));
}

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Worker::~Worker() = default;

const std::string &Worker::jobs_endpoint() const {
  return impl_->jobs_endpoint();
}
const std::string &Worker::replies_endpoint() const {
  return impl_->replies_endpoint();
}
BootId Worker::boot() const {
  return impl_->boot();
}
Durability Worker::durability() const {
  return impl_->durability();
}
void Worker::drain() {
  impl_->drain();
}
Result<void> Worker::wait() {
  return impl_->wait();
}

} // namespace onced
