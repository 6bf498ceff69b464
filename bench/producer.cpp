#include "producer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <vector>

#include <poll.h>
#include <zmq.hpp>

#include "held_signals.hpp"
#include "onced/random.hpp"
#include "process_usage.hpp"
#include "wire/messages.hpp"
#include "wire/sockets.hpp"

namespace onced::bench {
namespace {

using Time = MonotonicTime;
using std::chrono::nanoseconds;

// A reply is dropped when our pipe is full, so a message without one is sent again after this.
constexpr std::chrono::seconds resend_after{2};
// The longest wait before the worker's health and our signals are looked at.
constexpr std::chrono::milliseconds look_interval{100};

Time now() {
  return std::chrono::steady_clock::now();
}

Error failure(const std::string &cause) {
  return {.code = ErrorCode::timed_out, .concerns = "the worker", .cause = cause, .remedy = "this run is void"};
}

// From the start, when each message is due.
std::vector<nanoseconds> draw_times(const Workload &workload, const Schedule &schedule) {
  SeededRandom random(schedule.seed);
  std::vector<nanoseconds> times;
  times.reserve(workload.messages.size());
  double seconds = 0;
  for (const auto &message : workload.messages) {
    times.push_back(nanoseconds(std::llround(seconds * 1e9)));
    const double mean = static_cast<double>(message.deliveries) / schedule.deliveries_per_second;
    // 53 random bits: above 0 and at most 1.
    const double uniform = (static_cast<double>(random.next() >> 11U) + 1) / 9007199254740992.0;
    seconds += schedule.exponential ? -mean * std::log(uniform) : mean;
  }
  return times;
}

bool is_ready(zmq::socket_t &socket, int event) {
  return (socket.get(zmq::sockopt::events) & event) != 0;
}

// Waits until there are replies or, where asked for, room for jobs. ZeroMQ's own poll counts in milliseconds, which is
// too coarse for a schedule.
void wait(zmq::socket_t &replies, zmq::socket_t *jobs, Time until) {
  if (is_ready(replies, ZMQ_POLLIN) || (jobs != nullptr && is_ready(*jobs, ZMQ_POLLOUT))) return;
  const auto left = std::max(nanoseconds(0), nanoseconds(until - now()));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  std::array<pollfd, 2> items{};
  items[0] = {.fd = replies.get(zmq::sockopt::fd), .events = POLLIN, .revents = 0};
  if (jobs != nullptr) items[1] = {.fd = jobs->get(zmq::sockopt::fd), .events = POLLIN, .revents = 0};
  ::ppoll(items.data(), jobs != nullptr ? 2 : 1, &timeout, nullptr);
}

// The state of one run.
class Producer {
public:
  Producer(const Workload &workload, const ProducerOptions &options, zmq::socket_t &jobs, zmq::socket_t &replies)
      : workload_(workload), options_(options), jobs_(jobs), replies_(replies), from_(workload.messages.size()),
        answered_(workload.deliveries, false) {
    latencies_.reserve(workload.deliveries);
    unanswered_.reserve(workload.messages.size());
    for (const auto &message : workload.messages)
      unanswered_.push_back(message.deliveries);
  }

  [[nodiscard]] Result<void> greet();
  [[nodiscard]] Result<Run> run(const ChildProcess &worker);

private:
  struct Sent {
    std::size_t message;
    Time at;
    std::uint32_t attempt;
  };

  void start();
  bool send_all();
  bool send_next();
  bool send_again();
  void receive();
  void count(Outcome outcome);
  [[nodiscard]] bool has_room() const {
    return next_ < workload_.messages.size() &&
           latencies_.size() + options_.in_flight >= sent_deliveries_ + workload_.messages[next_].deliveries;
  }
  [[nodiscard]] Time next_event(bool pipe_full) const;
  [[nodiscard]] nanoseconds quantile(double share);

  const Workload &workload_;
  const ProducerOptions &options_;
  zmq::socket_t &jobs_;
  zmq::socket_t &replies_;
  std::vector<Time> from_; // by message: what latency counts from
  std::vector<std::size_t> unanswered_;
  std::vector<bool> answered_;
  std::vector<nanoseconds> latencies_;
  std::deque<Sent> sent_; // the oldest first; those that are answered leave when they come to the front
  std::size_t next_ = 0;  // message to send
  std::size_t sent_deliveries_ = 0;
  Time progressed_; // when something was answered or, with nothing in flight, sent
  Run run_;
  wire::WorkerMessageDecoder decoder_;
  wire::WorkerMessage message_;
};

Result<void> Producer::greet() {
  const Bytes hello = wire::encode_hello(workload_.sender);
  const auto patience = static_cast<int>(std::chrono::milliseconds(options_.patience).count());
  replies_.set(zmq::sockopt::sndtimeo, patience);
  replies_.set(zmq::sockopt::rcvtimeo, patience);
  zmq::message_t frame;
  if (!replies_.send(zmq::buffer(hello), zmq::send_flags::none) || !replies_.recv(frame, zmq::recv_flags::none) ||
      decoder_.decode(frame.to_string_view(), message_) != wire::WorkerFraming::greeting) {
    return tl::unexpected(failure("it did not greet"));
  }
  return {};
}

void Producer::start() {
  progressed_ = now();
  if (!options_.schedule) return;
  const auto times = draw_times(workload_, *options_.schedule);
  const Time begin = now();
  std::transform(times.begin(), times.end(), from_.begin(), [&](nanoseconds time) { return begin + time; });
}

// Everything that is due and has room. False: the pipe is full.
bool Producer::send_all() {
  for (;;) {
    while (!sent_.empty() && unanswered_[sent_.front().message] == 0)
      sent_.pop_front();
    if (sent_.empty() || now() < sent_.front().at + resend_after) break;
    if (!send_again()) return false;
  }
  while (has_room() && (!options_.schedule || from_[next_] <= now())) {
    if (!send_next()) return false;
  }
  return true;
}

bool Producer::send_next() {
  const auto &message = workload_.messages[next_];
  const Time at = now();
  if (!jobs_.send(zmq::buffer(message.bytes), zmq::send_flags::dontwait)) return false;
  if (!options_.schedule) from_[next_] = at;
  if (sent_deliveries_ == latencies_.size()) progressed_ = at;
  sent_deliveries_ += message.deliveries;
  sent_.push_back({.message = next_, .at = at, .attempt = 1});
  ++next_;
  return true;
}

bool Producer::send_again() {
  Sent sent = sent_.front();
  ++sent.attempt;
  sent.at = now();
  const Bytes bytes = encode_again(workload_, sent.message, sent.attempt);
  if (!jobs_.send(zmq::buffer(bytes), zmq::send_flags::dontwait)) return false;
  run_.resent += workload_.messages[sent.message].deliveries;
  sent_.pop_front();
  sent_.push_back(sent);
  return true;
}

void Producer::count(Outcome outcome) {
  switch (outcome) {
  case Outcome::stored:
    ++run_.stored;
    return;
  case Outcome::duplicate:
    ++run_.duplicates;
    return;
  case Outcome::conflict:
    ++run_.conflicts;
    return;
  default:
    ++run_.others;
  }
}

void Producer::receive() {
  zmq::message_t frame;
  const std::size_t per_message = workload_.messages.front().deliveries;
  while (replies_.recv(frame, zmq::recv_flags::dontwait)) {
    if (decoder_.decode(frame.to_string_view(), message_) != wire::WorkerFraming::replies) continue;
    progressed_ = now();
    for (const wire::Reply &reply : message_.replies.replies) {
      const std::size_t at = number_of(reply.sequence) - 1;
      if (at >= answered_.size() || answered_[at]) continue;
      answered_[at] = true;
      --unanswered_[at / per_message];
      latencies_.push_back(progressed_ - from_[at / per_message]);
      count(reply.outcome);
    }
  }
}

// When something is to be done although no reply comes.
Time Producer::next_event(bool pipe_full) const {
  Time next = now() + look_interval;
  if (pipe_full) return next;
  if (!sent_.empty()) next = std::min(next, sent_.front().at + resend_after);
  if (options_.schedule && has_room()) next = std::min(next, from_[next_]);
  return next;
}

nanoseconds Producer::quantile(double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(latencies_.size() - 1));
  std::nth_element(latencies_.begin(), latencies_.begin() + at, latencies_.end());
  return latencies_[static_cast<std::size_t>(at)];
}

Result<Run> Producer::run(const ChildProcess &worker) {
  const ProcessUsage before = usage_of(worker.id());
  start();
  const Time begin = progressed_;
  while (latencies_.size() < workload_.deliveries) {
    const bool pipe_full = !send_all();
    wait(replies_, pipe_full ? &jobs_ : nullptr, next_event(pipe_full));
    receive();
    if (HeldSignals::pending()) return tl::unexpected(failure("the benchmark was told to stop"));
    const bool waits = sent_deliveries_ > latencies_.size() || pipe_full;
    if (waits && now() > progressed_ + look_interval && worker.has_ended()) {
      return tl::unexpected(failure("it has ended"));
    }
    if (waits && now() > progressed_ + options_.patience) return tl::unexpected(failure("replies are missing"));
  }
  run_.elapsed = now() - begin;
  const ProcessUsage after = usage_of(worker.id());
  run_.worker_cpu = after.cpu - before.cpu;
  if (before.written_bytes && after.written_bytes) {
    run_.worker_written_bytes = *after.written_bytes - *before.written_bytes;
  }
  run_.latency_p50 = quantile(0.50);
  run_.latency_p99 = quantile(0.99);
  run_.latency_p999 = quantile(0.999);
  return run_;
}

} // namespace

Result<Run> produce(const Workload &workload, const Endpoints &endpoints, const ChildProcess &worker,
                    const ProducerOptions &options) {
  zmq::context_t context;
  auto jobs = wire::connect_jobs(context, endpoints.jobs);
  if (!jobs) return tl::unexpected(jobs.error());
  auto replies = wire::connect_replies(context, endpoints.replies);
  if (!replies) return tl::unexpected(replies.error());
  Producer producer(workload, options, *jobs, *replies);
  if (auto greeted = producer.greet(); !greeted) return tl::unexpected(greeted.error());
  return producer.run(worker);
}

} // namespace onced::bench
