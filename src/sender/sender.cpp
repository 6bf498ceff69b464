#include "onced/sender.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/draw_id.hpp"
#include "onced/digest.hpp"
#include "sender/connection.hpp"
#include "sender/delivery_events.hpp"
#include "sender/lab.hpp"
#include "sender/outbox.hpp"
#include "sender/recovery.hpp"
#include "sender/redelivery.hpp"

namespace onced {

using sender::Connection;
using sender::DeliveryEvents;
using sender::Lab;
using sender::Outbox;
using sender::OutboxJob;
using sender::Recovery;

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

Error outbox_full(const std::filesystem::path &outbox) {
  return {.code = ErrorCode::timed_out,
          .concerns = outbox.string(),
          .cause = "the outbox is full",
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

RedeliveryOptions redelivery_options(const SenderOptions &options) {
  RedeliveryOptions redelivery;
  redelivery.window_jobs_max = std::min(options.window_jobs, limits::window_jobs_max);
  redelivery.acknowledgement_timeout = options.acknowledgement_timeout;
  redelivery.acknowledgement_timeout_max = options.acknowledgement_timeout_max;
  redelivery.accepted_ask_again = options.accepted_ask_again;
  return redelivery;
}

Result<void> check(const SenderOptions &options) {
  if (options.window_jobs == 0) {
    return tl::unexpected(Error{.code = ErrorCode::usage,
                                .concerns = "window",
                                .cause = "a window of 0 jobs sends nothing",
                                .remedy = "give at least 1"});
  }
  // Also refuses what is no number.
  if (!(options.lab.loss_share >= 0 && options.lab.loss_share <= 1)) {
    return tl::unexpected(Error{.code = ErrorCode::usage,
                                .concerns = "loss share",
                                .cause = "is not within 0 to 1",
                                .remedy = "give 0.3 for 30 of 100 sends"});
  }
  return {};
}

// What a batch would take up.
struct Need {
  std::size_t jobs = 0; // that are kept and sent
  std::size_t bytes = 0;
  std::size_t refused = 0; // over the limits: each only takes the place of a settled job
};
Need need_of(const std::vector<Bytes> &jobs) {
  Need need;
  for (const Bytes &job : jobs) {
    if (job.size() > limits::job_bytes_max) {
      ++need.refused;
    } else {
      ++need.jobs;
      need.bytes += job.size();
    }
  }
  return need;
}

Result<void> check(const Need &need) {
  if (need.jobs + need.refused <= limits::sender_jobs_max && need.bytes <= limits::sender_bytes_max) return {};
  return tl::unexpected(Error{.code = ErrorCode::usage,
                              .concerns = "a batch of " + std::to_string(need.jobs + need.refused) + " jobs",
                              .cause = "it is larger than what a sender holds",
                              .remedy = "submit less at once"});
}

std::optional<UnsettledCause> cause_of(wire::Link link) {
  switch (link) {
  case wire::Link::none:
    return UnsettledCause::no_worker;
  case wire::Link::silent:
    return UnsettledCause::no_answer;
  case wire::Link::strange:
    return UnsettledCause::not_a_worker;
  case wire::Link::open:
    break;
  }
  return std::nullopt;
}

std::optional<UnsettledCause> cause_of(wire::WorkerState state) {
  switch (state) {
  case wire::WorkerState::opening:
    return UnsettledCause::worker_opening;
  case wire::WorkerState::full:
    return UnsettledCause::worker_full;
  case wire::WorkerState::unavailable:
    return UnsettledCause::worker_unavailable;
  case wire::WorkerState::draining:
    return UnsettledCause::worker_draining;
  case wire::WorkerState::ok:
    break;
  }
  return std::nullopt;
}

} // namespace

class Sender::Impl {
public:
  Impl(const SenderOptions &options, std::unique_ptr<Outbox> outbox, const SenderId &id, Clock &clock, Random &random,
       EventLog &log)
      : options_(options), clock_(clock), log_(log), outbox_(std::move(outbox)), id_(id),
        kill_switch_(options.kill_switch), lab_(Lab::of(options.lab)), redelivery_(redelivery_options(options), random),
        events_(options.deliveries, id) {
    if (!outbox_) return;
    last_appended_ = outbox_->found().last_sequence;
    last_sequence_ = last_appended_;
    kept_jobs_ = outbox_->found().jobs;
    resumed_ = kept_jobs_;
    kept_bytes_ = outbox_->found().bytes;
  }

  ~Impl() {
    stopping_ = true;
    if (connection_) connection_->wake();
    if (thread_.joinable()) thread_.join();
    remove_handed_out();
  }
  Impl(const Impl &) = delete;
  Impl &operator=(const Impl &) = delete;

  Result<void> start();

  Result<std::vector<Sequence>> submit(std::vector<Bytes> jobs, MonotonicTime deadline);
  Result<std::vector<Settled>> next_settled(MonotonicTime deadline, std::size_t jobs_max);
  [[nodiscard]] std::size_t unsettled() const;
  [[nodiscard]] Unsettled why_unsettled() const;
  [[nodiscard]] Unsettled why_unsettled(Sequence sequence) const;
  [[nodiscard]] SenderStats stats() const;
  [[nodiscard]] const SenderId &id() const { return id_; }

private:
  // What the worker looks like from here.
  struct SeenWorker {
    wire::Link replies = wire::Link::none;
    wire::Link jobs = wire::Link::none;
    std::optional<wire::WorkerState> state; // nothing: it has not said since the replies socket was connected
  };

  bool remove(const std::vector<Sequence> &sequences, std::size_t bytes);
  Result<std::vector<Sequence>> hold(std::vector<Bytes> jobs);
  Result<std::vector<Sequence>> hold_durably(std::vector<Bytes> jobs, const Need &need,
                                             std::unique_lock<std::mutex> &lock);
  void remove_handed_out();
  [[nodiscard]] bool has_room(const Need &need) const;
  [[nodiscard]] Sequence take_sequence();

  void run();
  void look_at_worker(bool connected);
  void on_answer(BytesView answer);
  [[nodiscard]] std::optional<Unsettled> obstacle() const;
  [[nodiscard]] std::optional<Unsettled> said_of(Sequence sequence) const;
  void greet(MonotonicTime now);
  bool read_outbox();
  bool send_due(MonotonicTime now);
  bool send(std::span<const Redelivery::DueJob> jobs);
  void receive(MonotonicTime now);
  void on_greeting(const wire::Greeting &greeting, MonotonicTime now);
  void on_replies(const wire::Replies &replies, MonotonicTime now);
  void keep(Settled settled);
  void refuse(Sequence sequence);
  void give_up(Error error);
  [[nodiscard]] Redelivery::Room room_for_reading() const;
  [[nodiscard]] bool settled_is_full() const { return settled_bytes_ >= limits::sender_bytes_max; }
  // What a settled job holds until it is fetched.
  static std::size_t bytes_of(const Settled &settled) {
    return settled.result.size() + settled.detail.size() + settled.job.size();
  }

  SenderOptions options_;
  Clock &clock_;
  EventLog &log_;
  std::unique_ptr<Outbox> outbox_; // null: in memory
  SenderId id_;
  KillSwitch kill_switch_;
  std::unique_ptr<Connection> connection_; // its calls, but `wake`, on thread_
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  MonotonicTime last_hello_;              // thread_ only
  MonotonicTime next_hello_;              // thread_ only
  bool greeted_ = false;                  // thread_ only
  std::optional<Lab> lab_;                // thread_ only
  Sequence read_up_to_{0};                // thread_ only: jobs of the outbox beyond it are not yet in redelivery_
  std::vector<wire::BatchEntry> entries_; // thread_ only

  mutable std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  Digester digester_;
  Redelivery redelivery_;
  Recovery recovery_;
  DeliveryEvents events_;
  std::uint64_t lost_ = 0;
  std::uint64_t lost_replies_ = 0;
  std::deque<Settled> settled_;
  std::size_t settled_bytes_ = 0; // what the settled jobs hold
  std::optional<Error> failure_;
  SeenWorker seen_;

  // Of jobs that were handed out and are not yet out of the outbox.
  std::vector<Sequence> handed_out_;
  std::size_t handed_out_bytes_ = 0;

  // With an outbox only.
  bool appending_ = false;         // one batch at a time, so that its jobs become readable in the order of sequences
  bool waits_for_room_ = false;    // thread_ left jobs in the outbox for want of room
  Sequence last_sequence_{0};      // taken
  Sequence last_appended_{0};      // readable in the outbox
  std::uint64_t kept_jobs_ = 0;    // in the outbox
  std::uint64_t kept_bytes_ = 0;   // of jobs in the outbox
  std::uint64_t resumed_ = 0;      // kept_jobs_ at the start
  std::uint64_t settled_kept_ = 0; // of kept_jobs_, those that have settled
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

bool Sender::Impl::has_room(const Need &need) const {
  const std::size_t places = settled_.size() + need.refused;
  if (outbox_) {
    return !appending_ && (need.refused == 0 || places <= limits::sender_jobs_max) &&
           kept_jobs_ + need.jobs <= options_.outbox_jobs_max && kept_bytes_ + need.bytes <= options_.outbox_bytes_max;
  }
  const Redelivery::Room room = redelivery_.room();
  return need.jobs + places <= room.jobs && need.bytes <= room.bytes && !settled_is_full();
}

Sequence Sender::Impl::take_sequence() {
  if (!outbox_) return redelivery_.take_sequence();
  last_sequence_ = Sequence{number_of(last_sequence_) + 1};
  return last_sequence_;
}

Result<std::vector<Sequence>> Sender::Impl::submit(std::vector<Bytes> jobs, MonotonicTime deadline) {
  const Need need = need_of(jobs);
  if (auto checked = check(need); !checked) return tl::unexpected(checked.error());
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [&] { return failure_ || has_room(need); })) {
    return tl::unexpected(outbox_ ? outbox_full(options_.outbox) : sender_full(options_.jobs_endpoint));
  }
  if (failure_) return tl::unexpected(*failure_);
  auto sequences = outbox_ ? hold_durably(std::move(jobs), need, lock) : hold(std::move(jobs));
  lock.unlock();
  changed_.notify_all();
  connection_->wake();
  return sequences;
}

// mutex_ is held.
Result<std::vector<Sequence>> Sender::Impl::hold(std::vector<Bytes> jobs) {
  std::vector<Sequence> sequences;
  for (Bytes &job : jobs) {
    kill_switch_.arrive(KillPoint::sender_before_outbox);
    if (job.size() > limits::job_bytes_max) {
      sequences.push_back(take_sequence());
      refuse(sequences.back());
    } else {
      const Tag tag = digester_.tag(job);
      sequences.push_back(redelivery_.add(std::move(job), tag, clock_.wall()));
      events_.kept(sequences.back(), tag);
    }
    kill_switch_.arrive(KillPoint::sender_after_outbox);
  }
  return sequences;
}

// mutex_ is held, and let go of during the write.
Result<std::vector<Sequence>> Sender::Impl::hold_durably(std::vector<Bytes> jobs, const Need &need,
                                                         std::unique_lock<std::mutex> &lock) {
  std::vector<Sequence> sequences;
  std::vector<Sequence> refused;
  std::vector<OutboxJob> kept;
  kept.reserve(need.jobs);
  for (Bytes &job : jobs) {
    sequences.push_back(take_sequence());
    if (job.size() > limits::job_bytes_max) {
      refused.push_back(sequences.back());
    } else {
      const Tag tag = digester_.tag(job);
      kept.push_back({sequences.back(), tag, clock_.wall(), std::move(job)});
    }
  }
  const Sequence last = last_sequence_;
  appending_ = true;
  // Counted before they are there: the thread may settle one before the write has returned to us.
  kept_jobs_ += need.jobs;
  kept_bytes_ += need.bytes;
  lock.unlock();
  for (std::size_t job = 0; job < kept.size(); ++job)
    kill_switch_.arrive(KillPoint::sender_before_outbox);
  const auto appended = outbox_->append(kept, last);
  for (std::size_t job = 0; appended && job < kept.size(); ++job) {
    events_.kept(kept[job].sequence, kept[job].tag);
    kill_switch_.arrive(KillPoint::sender_after_outbox);
  }
  lock.lock();
  appending_ = false;
  if (!appended) {
    kept_jobs_ -= need.jobs;
    kept_bytes_ -= need.bytes;
    failure_ = appended.error();
    return tl::unexpected(appended.error());
  }
  last_appended_ = last;
  for (const Sequence sequence : refused)
    refuse(sequence);
  return sequences;
}

Result<std::vector<Settled>> Sender::Impl::next_settled(MonotonicTime deadline, std::size_t jobs_max) {
  remove_handed_out();
  std::unique_lock lock(mutex_);
  const bool any = changed_.wait_until(lock, deadline, [&] { return failure_ || !settled_.empty(); });
  if (!any) return tl::unexpected(nothing_settled(options_.replies_endpoint));
  if (settled_.empty()) return tl::unexpected(*failure_);
  const bool thread_waits = settled_is_full() || waits_for_room_;
  std::vector<Settled> taken;
  while (!settled_.empty() && taken.size() < std::max<std::size_t>(jobs_max, 1)) {
    Settled &settled = settled_.front();
    settled_bytes_ -= bytes_of(settled);
    if (settled.attempts > 0) {
      handed_out_.push_back(settled.sequence);
      handed_out_bytes_ += settled.job.size();
    }
    taken.push_back(std::move(settled));
    settled_.pop_front();
  }
  lock.unlock();
  changed_.notify_all();
  if (thread_waits) connection_->wake();
  return taken;
}

// The caller has come back, so it has dealt with what it was given.
void Sender::Impl::remove_handed_out() {
  std::vector<Sequence> sequences;
  std::size_t bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    sequences.swap(handed_out_);
    std::swap(bytes, handed_out_bytes_);
  }
  if (sequences.empty()) return;
  for (std::size_t job = 0; job < sequences.size(); ++job)
    kill_switch_.arrive(KillPoint::sender_before_removal);
  if (outbox_ && !remove(sequences, bytes)) return;
  for (std::size_t job = 0; job < sequences.size(); ++job)
    kill_switch_.arrive(KillPoint::sender_after_removal);
}

// False: the outbox has failed.
bool Sender::Impl::remove(const std::vector<Sequence> &sequences, std::size_t bytes) {
  const auto removed = outbox_->remove(sequences);
  if (!removed) {
    give_up(removed.error());
    return false;
  }
  {
    const std::scoped_lock lock(mutex_);
    kept_jobs_ -= sequences.size();
    kept_bytes_ -= bytes;
    settled_kept_ -= sequences.size();
  }
  changed_.notify_all();
  return true;
}

std::size_t Sender::Impl::unsettled() const {
  const std::scoped_lock lock(mutex_);
  return outbox_ ? kept_jobs_ - settled_kept_ : redelivery_.counters().unsettled;
}

SenderStats Sender::Impl::stats() const {
  const std::scoped_lock lock(mutex_);
  const auto counters = redelivery_.counters();
  return {.resumed = resumed_,
          .resends = counters.resends,
          .lost = lost_,
          .lost_replies = lost_replies_,
          .ignored_replies = counters.ignored_replies,
          .new_boots = recovery_.new_boots(),
          .recoveries = recovery_.times()};
}

// --- The sender's thread ------------------------------------------------------------------------------------------

void Sender::Impl::run() {
  while (!stopping_) {
    const MonotonicTime now = clock_.monotonic();
    if (now >= next_hello_) greet(now);
    const bool more_to_read = read_outbox();
    const bool pipe_full = !send_due(now);
    MonotonicTime wake_at = next_hello_;
    bool reads_replies = true;
    {
      const std::scoped_lock lock(mutex_);
      if (failure_) return;
      reads_replies = !settled_is_full();
      const auto due = redelivery_.next_due(now);
      if (due && !pipe_full) wake_at = std::min(wake_at, *due);
      if (more_to_read) wake_at = now;
    }
    const auto events = connection_->wait(wake_at - now, reads_replies, pipe_full);
    look_at_worker(events.connected);
    if (events.connected) next_hello_ = clock_.monotonic();
    if (events.replies) receive(clock_.monotonic());
  }
}

void Sender::Impl::greet(MonotonicTime now) {
  const bool sent = connection_->send_hello(id_);
  last_hello_ = now;
  next_hello_ = now + (sent && greeted_ ? std::chrono::milliseconds(hello_interval) : hello_retry);
}

// What may be read from the outbox now: as much as a caller in memory could submit. mutex_ is held.
Redelivery::Room Sender::Impl::room_for_reading() const {
  Redelivery::Room room = redelivery_.room();
  room.jobs -= std::min(room.jobs, settled_.size());
  if (settled_is_full()) room.jobs = 0;
  return {std::min(room.jobs, limits::outbox_read_jobs), std::min(room.bytes, limits::outbox_read_bytes)};
}

// Takes over jobs from the outbox while there is room for them. True: there are more to be read at once.
bool Sender::Impl::read_outbox() {
  if (!outbox_) return false;
  Redelivery::Room room;
  Sequence last{0};
  {
    const std::scoped_lock lock(mutex_);
    last = last_appended_;
    room = room_for_reading();
    waits_for_room_ = read_up_to_ < last && room.jobs == 0;
    if (read_up_to_ >= last || room.jobs == 0) return false;
  }
  auto read = outbox_->read_after(read_up_to_, room.jobs, room.bytes);
  if (!read) {
    give_up(read.error());
    return false;
  }
  const std::scoped_lock lock(mutex_);
  for (OutboxJob &job : read->jobs) {
    read_up_to_ = job.sequence;
    redelivery_.restore(job.sequence, std::move(job.job), job.tag, job.issued_at);
  }
  if (read->at_end) read_up_to_ = std::max(read_up_to_, last);
  waits_for_room_ = read->jobs.empty() && !read->at_end;
  return read_up_to_ < last_appended_ && !waits_for_room_;
}

// Sends what is due. False: the pipe is full, and jobs stay due.
bool Sender::Impl::send_due(MonotonicTime now) {
  const std::scoped_lock lock(mutex_);
  while (!stopping_) {
    const auto jobs = redelivery_.due(now, connection_->jobs_per_message(), connection_->job_bytes_per_message());
    if (jobs.empty()) return true;
    // A reply did not come: perhaps the worker has forgotten the way here, or another peer greets it under our id.
    const bool again = std::any_of(jobs.begin(), jobs.end(), [](const auto &job) { return job.attempt > 1; });
    if (again && now - last_hello_ >= hello_retry) greet(now);
    if (!send(jobs)) return false;
    redelivery_.sent(jobs, now);
    kill_switch_.arrive(KillPoint::sender_after_send);
  }
  return true;
}

// False: the pipe is full, and nothing was sent.
bool Sender::Impl::send(std::span<const Redelivery::DueJob> jobs) {
  entries_.clear();
  for (const auto &job : jobs) {
    entries_.push_back(
        {.sequence = job.sequence, .tag = job.tag, .attempt = job.attempt, .issued_at = job.issued_at, .job = job.job});
  }
  if (lab_) lost_ += lab_->disturb(entries_);
  events_.published(entries_); // before the worker can say that it has them
  return entries_.empty() || connection_->send_batch(id_, entries_);
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
      on_answer(message.answer);
      break;
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
  recovery_.greeted(greeting.boot, redelivery_.counters().unsettled > 0, now);
  redelivery_.on_greeting(greeting.boot, now, greeting.horizon);
  seen_.state = wire::WorkerState::ok;
  if (!greeted_) next_hello_ = now + hello_interval;
  greeted_ = true;
}

// Of answers only notices are for us, since we asked nothing: the worker says why it does not greet.
void Sender::Impl::on_answer(BytesView answer) {
  const auto state = wire::state_in(answer);
  const std::scoped_lock lock(mutex_);
  if (state) seen_.state = state;
}

void Sender::Impl::look_at_worker(bool connected) {
  const std::scoped_lock lock(mutex_);
  seen_.replies = connection_->replies_link();
  seen_.jobs = connection_->jobs_link();
  if (connected || seen_.replies != wire::Link::open) seen_.state.reset();
}

// What keeps all jobs from settling. mutex_ is held.
std::optional<Unsettled> Sender::Impl::obstacle() const {
  if (const auto cause = cause_of(seen_.replies)) return Unsettled{*cause, options_.replies_endpoint, {}};
  if (!seen_.state) return Unsettled{UnsettledCause::no_answer, options_.replies_endpoint, {}};
  if (const auto cause = cause_of(*seen_.state)) return Unsettled{*cause, options_.replies_endpoint, {}};
  if (const auto cause = cause_of(seen_.jobs)) return Unsettled{*cause, options_.jobs_endpoint, {}};
  return std::nullopt;
}

// What the worker has said of this job. mutex_ is held.
std::optional<Unsettled> Sender::Impl::said_of(Sequence sequence) const {
  auto said = redelivery_.last_said(sequence);
  if (!said) return std::nullopt;
  const auto cause = said->outcome == Outcome::accepted ? UnsettledCause::accepted : UnsettledCause::busy;
  return Unsettled{cause, {}, std::move(said->detail)};
}

Unsettled Sender::Impl::why_unsettled() const {
  const std::scoped_lock lock(mutex_);
  if (auto found = obstacle()) return std::move(*found);
  const auto first = redelivery_.first_unsettled();
  auto said = first ? said_of(*first) : std::nullopt;
  return said ? std::move(*said) : Unsettled{UnsettledCause::no_reply, {}, {}};
}

// A job in custody is so whatever has become of the worker.
Unsettled Sender::Impl::why_unsettled(Sequence sequence) const {
  const std::scoped_lock lock(mutex_);
  auto said = said_of(sequence);
  if (said && said->cause == UnsettledCause::accepted) return std::move(*said);
  if (auto found = obstacle()) return std::move(*found);
  return said ? std::move(*said) : Unsettled{UnsettledCause::no_reply, {}, {}};
}

void Sender::Impl::on_replies(const wire::Replies &replies, MonotonicTime now) {
  {
    const std::scoped_lock lock(mutex_);
    recovery_.replied(replies.boot, now);
    for (const wire::Reply &reply : replies.replies) {
      if (lab_ && lab_->loses_reply(reply.sequence)) {
        ++lost_replies_;
        events_.lost(reply);
        continue;
      }
      auto result = redelivery_.on_reply({.sequence = reply.sequence,
                                          .tag = reply.tag,
                                          .outcome = reply.outcome,
                                          .result = reply.result,
                                          .detail = reply.detail,
                                          .durability = replies.durability},
                                         now);
      if (!result.settled) continue;
      recovery_.settled(now);
      events_.acknowledged(*result.settled, reply.tag);
      if (outbox_) {
        ++settled_kept_;
      } else {
        result.settled->job = Bytes();
      }
      keep(std::move(*result.settled));
    }
  }
  changed_.notify_all();
  kill_switch_.arrive(KillPoint::sender_after_reply);
}

// Keeps a settled job until it is fetched. mutex_ is held.
void Sender::Impl::keep(Settled settled) {
  settled_bytes_ += bytes_of(settled);
  settled_.push_back(std::move(settled));
  changed_.notify_all();
  if (options_.on_settled) options_.on_settled();
}

// Settles a job over the limits: on the wire it would cost the connection and its neighbours. mutex_ is held.
void Sender::Impl::refuse(Sequence sequence) {
  keep({.sequence = sequence,
        .outcome = Outcome::invalid,
        .result = {},
        .detail = std::string(name_of(JobDefect::too_large)),
        .attempts = 0,
        .job = {}});
}

void Sender::Impl::give_up(Error error) {
  {
    const std::scoped_lock lock(mutex_);
    failure_ = std::move(error);
  }
  changed_.notify_all();
  if (options_.on_settled) options_.on_settled();
}

// --- Sender -------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Sender>> Sender::start(const SenderOptions &options, Clock &clock, Random &random,
                                              EventLog &log) {
  if (auto checked = check(options); !checked) return tl::unexpected(checked.error());
  SenderId id = options.sender_id.value_or(draw_id<SenderId>(random));
  std::unique_ptr<Outbox> outbox;
  if (!options.outbox.empty()) {
    auto opened = Outbox::open(options.outbox, id, options.environment, options.outbox_accept_loss);
    if (!opened) return tl::unexpected(opened.error());
    outbox = std::move(*opened);
    if (options.sender_id && id != outbox->id()) {
      return tl::unexpected(
          Error{.code = ErrorCode::usage,
                .concerns = options.outbox.string(),
                .cause = "the outbox belongs to another sender id, that of " + handle_of(outbox->id()),
                .remedy = "give that sender id, or none"});
    }
    id = outbox->id();
  }
  auto impl = std::make_unique<Impl>(options, std::move(outbox), id, clock, random, log);
  if (auto started = impl->start(); !started) return tl::unexpected(started.error());
  return std::unique_ptr<Sender>(new Sender(std::move(impl)));
}

Sender::Sender(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sender::~Sender() = default;

Result<Sequence> Sender::submit(Bytes job, MonotonicTime deadline) {
  std::vector<Bytes> jobs;
  jobs.push_back(std::move(job));
  const auto sequences = impl_->submit(std::move(jobs), deadline);
  if (!sequences) return tl::unexpected(sequences.error());
  return sequences->front();
}
Result<std::vector<Sequence>> Sender::submit(std::vector<Bytes> jobs, MonotonicTime deadline) {
  return impl_->submit(std::move(jobs), deadline);
}
Result<Settled> Sender::next_settled(MonotonicTime deadline) {
  auto settled = impl_->next_settled(deadline, 1);
  if (!settled) return tl::unexpected(settled.error());
  return std::move(settled->front());
}
Result<std::vector<Settled>> Sender::next_settled(MonotonicTime deadline, std::size_t jobs_max) {
  return impl_->next_settled(deadline, jobs_max);
}
SenderStats Sender::stats() const {
  return impl_->stats();
}
std::size_t Sender::unsettled() const {
  return impl_->unsettled();
}
Unsettled Sender::why_unsettled() const {
  return impl_->why_unsettled();
}
Unsettled Sender::why_unsettled(Sequence sequence) const {
  return impl_->why_unsettled(sequence);
}
const SenderId &Sender::id() const {
  return impl_->id();
}

} // namespace onced
