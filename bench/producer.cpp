#include "producer.hpp"

#include <algorithm>
#include <ctime>
#include <vector>

#include <zmq.hpp>

#include "wire/messages.hpp"
#include "wire/sockets.hpp"

namespace onced::bench {
namespace {

using Time = MonotonicTime;

std::chrono::nanoseconds cpu_of(int process) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

Error late(const std::string &what) {
  return {.code = ErrorCode::timed_out, .concerns = "the worker", .cause = what, .remedy = "see its log"};
}

// The state of one run.
class Producer {
public:
  Producer(const Workload &workload, std::size_t window, Time deadline)
      : workload_(workload), window_(window), deadline_(deadline), sent_at_(workload.messages.size()),
        answered_(workload.deliveries, false) {
    latencies_.reserve(workload.deliveries);
  }

  Result<void> greet(zmq::socket_t &replies);
  Result<Run> run(zmq::socket_t &jobs, zmq::socket_t &replies, int worker);

private:
  bool wait(zmq::socket_t &jobs, zmq::socket_t &replies, bool for_room);
  bool send(zmq::socket_t &jobs);
  void receive(zmq::socket_t &replies);
  [[nodiscard]] bool may_send() const {
    return next_ < workload_.messages.size() && in_flight_ + workload_.messages[next_].deliveries <= window_;
  }
  [[nodiscard]] std::chrono::nanoseconds quantile(double share);

  const Workload &workload_;
  std::size_t window_;
  Time deadline_;
  std::vector<Time> sent_at_;
  std::vector<bool> answered_;
  std::vector<std::chrono::nanoseconds> latencies_;
  std::size_t next_ = 0; // message to send
  std::size_t in_flight_ = 0;
  Run run_;
  wire::WorkerMessageDecoder decoder_;
  wire::WorkerMessage message_;
};

Result<void> Producer::greet(zmq::socket_t &replies) {
  const Bytes hello = wire::encode_hello(workload_.sender);
  replies.set(zmq::sockopt::sndtimeo, static_cast<int>(wire::left_until(deadline_).count()));
  replies.set(zmq::sockopt::rcvtimeo, static_cast<int>(wire::left_until(deadline_).count()));
  zmq::message_t frame;
  if (!replies.send(zmq::buffer(hello), zmq::send_flags::none) || !replies.recv(frame, zmq::recv_flags::none) ||
      decoder_.decode(frame.to_string_view(), message_) != wire::WorkerFraming::greeting) {
    return tl::unexpected(late("it did not greet"));
  }
  return {};
}

bool Producer::wait(zmq::socket_t &jobs, zmq::socket_t &replies, bool for_room) {
  std::array<zmq::pollitem_t, 2> items{{
      {.socket = replies.handle(), .fd = 0, .events = ZMQ_POLLIN, .revents = 0},
      {.socket = jobs.handle(), .fd = 0, .events = ZMQ_POLLOUT, .revents = 0},
  }};
  return zmq::poll(items.data(), for_room ? 2 : 1, wire::left_until(deadline_)) > 0;
}

bool Producer::send(zmq::socket_t &jobs) {
  const auto &message = workload_.messages[next_];
  sent_at_[next_] = std::chrono::steady_clock::now();
  if (!jobs.send(zmq::buffer(message.bytes), zmq::send_flags::dontwait)) return false;
  in_flight_ += message.deliveries;
  ++next_;
  return true;
}

void Producer::receive(zmq::socket_t &replies) {
  zmq::message_t frame;
  const std::size_t per_message = workload_.messages.front().deliveries;
  while (replies.recv(frame, zmq::recv_flags::dontwait)) {
    if (decoder_.decode(frame.to_string_view(), message_) != wire::WorkerFraming::replies) continue;
    const Time now = std::chrono::steady_clock::now();
    for (const wire::Reply &reply : message_.replies.replies) {
      const std::size_t at = number_of(reply.sequence) - 1;
      if (at >= answered_.size() || answered_[at]) continue;
      answered_[at] = true;
      --in_flight_;
      latencies_.push_back(now - sent_at_[at / per_message]);
      if (reply.outcome == Outcome::stored) {
        ++run_.stored;
      } else if (reply.outcome == Outcome::duplicate) {
        ++run_.duplicates;
      } else {
        ++run_.others;
      }
    }
  }
}

std::chrono::nanoseconds Producer::quantile(double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(latencies_.size() - 1));
  std::nth_element(latencies_.begin(), latencies_.begin() + at, latencies_.end());
  return latencies_[static_cast<std::size_t>(at)];
}

Result<Run> Producer::run(zmq::socket_t &jobs, zmq::socket_t &replies, int worker) {
  const auto cpu_before = cpu_of(worker);
  const Time start = std::chrono::steady_clock::now();
  bool pipe_full = false;
  while (latencies_.size() < workload_.deliveries) {
    pipe_full = false;
    while (may_send() && !pipe_full)
      pipe_full = !send(jobs);
    if (!wait(jobs, replies, pipe_full)) return tl::unexpected(late("replies are missing"));
    receive(replies);
  }
  run_.elapsed = std::chrono::steady_clock::now() - start;
  run_.worker_cpu = cpu_of(worker) - cpu_before;
  run_.latency_p50 = quantile(0.50);
  run_.latency_p99 = quantile(0.99);
  return run_;
}

} // namespace

Result<Run> produce(const Workload &workload, const Endpoints &endpoints, int worker, std::size_t window,
                    std::chrono::seconds patience) {
  const Time deadline = std::chrono::steady_clock::now() + patience;
  zmq::context_t context;
  auto jobs = wire::connect_jobs(context, endpoints.jobs);
  if (!jobs) return tl::unexpected(jobs.error());
  auto replies = wire::connect_replies(context, endpoints.replies);
  if (!replies) return tl::unexpected(replies.error());
  Producer producer(workload, window, deadline);
  if (auto greeted = producer.greet(*replies); !greeted) return tl::unexpected(greeted.error());
  return producer.run(*jobs, *replies, worker);
}

} // namespace onced::bench
