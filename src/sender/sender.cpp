#include "onced/sender.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "delivery/redelivery.hpp"
#include "onced/digest.hpp"
#include "sender/connection.hpp"

namespace onced {

using sender::Connection;

namespace {

// A greeting tells the worker the way back; a ROUTER learns of a peer only when it speaks (docs/protocol.md).
constexpr std::chrono::seconds hello_interval{5};
// Until the worker has answered the first, or could not be told at once.
constexpr std::chrono::milliseconds hello_retry{100};

Error sender_full(const std::string &endpoint) {
  return {.code = ErrorCode::timed_out,
          .concerns = endpoint,
          .cause = "the sender is full of jobs that are not settled",
          .remedy = "check that the worker runs and keeps up, or wait longer"};
}

Error nothing_settled(const std::string &endpoint) {
  return {.code = ErrorCode::timed_out,
          .concerns = endpoint,
          .cause = "no job settled in time",
          .remedy = "check that the worker runs, or wait longer"};
}

Error unsupported_protocol(const std::string &endpoint, const std::vector<std::uint64_t> &versions) {
  std::string spoken;
  for (const std::uint64_t version : versions)
    spoken += (spoken.empty() ? "" : ", ") + std::to_string(version);
  return {.code = ErrorCode::unsupported_protocol,
          .concerns = endpoint,
          .cause = "the worker does not speak our protocol version; it speaks " + (spoken.empty() ? "none" : spoken),
          .remedy = "use a sender and a worker of the same release"};
}

SenderId random_sender_id(Random &random) {
  SenderId id;
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t bits = random.next();
    for (std::size_t at = 0; at < 8; ++at, bits >>= 8U)
      id.bytes[half * 8 + at] = static_cast<std::uint8_t>(bits);
  }
  return id;
}

RedeliveryOptions redelivery_options(const SenderOptions &options) {
  RedeliveryOptions redelivery;
  redelivery.window_jobs_max = std::min(options.window_jobs, limits::window_jobs_max);
  redelivery.acknowledgement_timeout = options.acknowledgement_timeout;
  redelivery.acknowledgement_timeout_max = options.acknowledgement_timeout_max;
  return redelivery;
}

} // namespace

class Sender::Impl {
public:
  Impl(const SenderOptions &options, Clock &clock, Random &random, EventLog &log)
      : options_(options), clock_(clock), log_(log), id_(options.sender_id.value_or(random_sender_id(random))),
        kill_switch_(options.kill_switch), redelivery_(redelivery_options(options), random) {}

  ~Impl() {
    stopping_ = true;
    if (connection_) connection_->wake();
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl &) = delete;
  Impl &operator=(const Impl &) = delete;

  Result<void> start();
  Result<Sequence> submit(Bytes job, MonotonicTime deadline);
  Result<Settled> next_settled(MonotonicTime deadline);
  [[nodiscard]] std::size_t unsettled() const;
  [[nodiscard]] const SenderId &id() const { return id_; }

private:
  void run();
  void greet(MonotonicTime now);
  bool send_due(MonotonicTime now);
  void receive(MonotonicTime now);
  void on_greeting(const wire::Greeting &greeting, MonotonicTime now);
  void on_replies(const wire::Replies &replies, MonotonicTime now);
  void keep(Settled settled);
  Sequence settle_too_large();
  void give_up(Error error);
  [[nodiscard]] bool has_room(std::size_t job_bytes) const;
  [[nodiscard]] bool settled_is_full() const { return settled_bytes_ >= limits::sender_bytes_max; }

  SenderOptions options_;
  Clock &clock_;
  EventLog &log_;
  SenderId id_;
  KillSwitch kill_switch_;
  std::unique_ptr<Connection> connection_; // its calls, but `wake`, on thread_
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  MonotonicTime last_hello_; // thread_ only
  MonotonicTime next_hello_; // thread_ only
  bool greeted_ = false;     // thread_ only

  mutable std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  Digester digester_;
  Redelivery redelivery_;
  std::deque<Settled> settled_;
  std::size_t settled_bytes_ = 0; // what the settled jobs hold
  std::optional<Error> failure_;
};

Result<void> Sender::Impl::start() {
  auto connection = Connection::open(options_.jobs_endpoint, options_.replies_endpoint);
  if (!connection) return tl::unexpected(connection.error());
  connection_ = std::move(*connection);
  next_hello_ = clock_.monotonic();
  thread_ = std::thread([this] {
    try {
      run();
    } catch (const std::exception &error) {
      give_up({.code = ErrorCode::internal,
               .concerns = "the sender's thread",
               .cause = error.what(),
               .remedy = "start the sender again, and report this"});
    }
  });
  return {};
}

// --- Callers' threads ---------------------------------------------------------------------------------------------

bool Sender::Impl::has_room(std::size_t job_bytes) const {
  const bool is_sent = job_bytes <= limits::job_bytes_max; // else it only takes the place of a settled job
  return (!is_sent || redelivery_.has_room(job_bytes)) &&
         redelivery_.counters().unsettled + settled_.size() < limits::sender_jobs_max && !settled_is_full();
}

Result<Sequence> Sender::Impl::submit(Bytes job, MonotonicTime deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [&] { return failure_ || has_room(job.size()); })) {
    return tl::unexpected(sender_full(options_.jobs_endpoint));
  }
  if (failure_) return tl::unexpected(*failure_);
  if (job.size() > limits::job_bytes_max) return settle_too_large();
  const Tag tag = digester_.tag(job);
  const Sequence sequence = redelivery_.add(std::move(job), tag, clock_.wall());
  lock.unlock();
  connection_->wake();
  return sequence;
}

// On the wire it would cost the connection and its neighbours. mutex_ is held.
Sequence Sender::Impl::settle_too_large() {
  const Sequence sequence = redelivery_.take_sequence();
  keep({.sequence = sequence,
        .outcome = Outcome::invalid,
        .result = {},
        .detail = std::string(name_of(JobDefect::too_large)),
        .attempts = 0});
  return sequence;
}

Result<Settled> Sender::Impl::next_settled(MonotonicTime deadline) {
  std::unique_lock lock(mutex_);
  const bool any = changed_.wait_until(lock, deadline, [&] { return failure_ || !settled_.empty(); });
  if (!any) return tl::unexpected(nothing_settled(options_.replies_endpoint));
  if (settled_.empty()) return tl::unexpected(*failure_);
  const bool was_full = settled_is_full();
  Settled settled = std::move(settled_.front());
  settled_.pop_front();
  settled_bytes_ -= settled.result.size() + settled.detail.size();
  lock.unlock();
  changed_.notify_all();
  if (was_full) connection_->wake(); // it had stopped reading replies
  return settled;
}

std::size_t Sender::Impl::unsettled() const {
  const std::scoped_lock lock(mutex_);
  return redelivery_.counters().unsettled;
}

// --- The sender's thread ------------------------------------------------------------------------------------------

void Sender::Impl::run() {
  while (!stopping_) {
    const MonotonicTime now = clock_.monotonic();
    if (now >= next_hello_) greet(now);
    const bool pipe_full = !send_due(now);
    MonotonicTime wake_at = next_hello_;
    bool reads_replies = true;
    {
      const std::scoped_lock lock(mutex_);
      if (failure_) return;
      reads_replies = !settled_is_full();
      const auto due = redelivery_.next_due(now);
      if (due && !pipe_full) wake_at = std::min(wake_at, *due);
    }
    const auto events = connection_->wait(wake_at - now, reads_replies, pipe_full);
    if (events.connected) next_hello_ = clock_.monotonic();
    if (events.replies) receive(clock_.monotonic());
  }
}

void Sender::Impl::greet(MonotonicTime now) {
  const bool sent = connection_->send_hello(id_);
  last_hello_ = now;
  next_hello_ = now + (sent && greeted_ ? std::chrono::milliseconds(hello_interval) : hello_retry);
}

// Sends what is due. False: the pipe is full, and jobs stay due.
bool Sender::Impl::send_due(MonotonicTime now) {
  const std::scoped_lock lock(mutex_);
  std::vector<wire::BatchEntry> entries;
  while (!stopping_) {
    const auto jobs = redelivery_.due(now, connection_->jobs_per_message(), connection_->job_bytes_per_message());
    if (jobs.empty()) return true;
    entries.clear();
    bool again = false;
    for (const auto &job : jobs) {
      again = again || job.attempt > 1;
      entries.push_back({.sequence = job.sequence,
                         .tag = job.tag,
                         .attempt = job.attempt,
                         .issued_at = job.issued_at,
                         .job = job.job});
    }
    // A reply did not come: perhaps the worker has forgotten the way here, or another peer greets it under our id.
    if (again && now - last_hello_ >= hello_retry) greet(now);
    if (!connection_->send_batch(id_, entries)) return false;
    redelivery_.sent(jobs, now);
    kill_switch_.arrive(KillPoint::sender_after_send);
  }
  return true;
}

void Sender::Impl::receive(MonotonicTime now) {
  wire::WorkerMessage message;
  while (const auto framing = connection_->receive(message)) {
    switch (*framing) {
    case wire::WorkerFraming::greeting:
      on_greeting(message.greeting, now);
      break;
    case wire::WorkerFraming::replies:
      on_replies(message.replies, now);
      break;
    case wire::WorkerFraming::unsupported:
      return give_up(unsupported_protocol(options_.replies_endpoint, message.versions));
    case wire::WorkerFraming::answer:
      break; // we asked nothing
    case wire::WorkerFraming::malformed:
      log_.write({.level = EventLevel::warning, .name = "reply.malformed", .fields = {}});
      break;
    }
    const std::scoped_lock lock(mutex_);
    if (settled_is_full()) return;
  }
}

void Sender::Impl::on_greeting(const wire::Greeting &greeting, MonotonicTime now) {
  connection_->obey(greeting);
  const std::scoped_lock lock(mutex_);
  redelivery_.on_greeting(greeting.boot, now);
  if (!greeted_) next_hello_ = now + hello_interval;
  greeted_ = true;
}

void Sender::Impl::on_replies(const wire::Replies &replies, MonotonicTime now) {
  {
    const std::scoped_lock lock(mutex_);
    for (const wire::Reply &reply : replies.replies) {
      auto result = redelivery_.on_reply({.sequence = reply.sequence,
                                          .tag = reply.tag,
                                          .outcome = reply.outcome,
                                          .result = reply.result,
                                          .detail = reply.detail,
                                          .durability = replies.durability},
                                         now);
      if (result.settled) keep(std::move(*result.settled));
    }
  }
  changed_.notify_all();
  kill_switch_.arrive(KillPoint::sender_after_reply);
}

// Keeps a settled job until it is fetched. mutex_ is held.
void Sender::Impl::keep(Settled settled) {
  settled_bytes_ += settled.result.size() + settled.detail.size();
  settled_.push_back(std::move(settled));
  changed_.notify_all();
}

void Sender::Impl::give_up(Error error) {
  {
    const std::scoped_lock lock(mutex_);
    failure_ = std::move(error);
  }
  changed_.notify_all();
}

// --- Sender -------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Sender>> Sender::start(const SenderOptions &options, Clock &clock, Random &random,
                                              EventLog &log) {
  if (options.window_jobs == 0) {
    return tl::unexpected(Error{.code = ErrorCode::usage,
                                .concerns = "window",
                                .cause = "a window of 0 jobs sends nothing",
                                .remedy = "give at least 1"});
  }
  auto impl = std::make_unique<Impl>(options, clock, random, log);
  if (auto started = impl->start(); !started) return tl::unexpected(started.error());
  return std::unique_ptr<Sender>(new Sender(std::move(impl)));
}

Sender::Sender(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sender::~Sender() = default;

Result<Sequence> Sender::submit(Bytes job, MonotonicTime deadline) {
  return impl_->submit(std::move(job), deadline);
}
Result<Settled> Sender::next_settled(MonotonicTime deadline) {
  return impl_->next_settled(deadline);
}
std::size_t Sender::unsettled() const {
  return impl_->unsettled();
}
const SenderId &Sender::id() const {
  return impl_->id();
}

} // namespace onced
