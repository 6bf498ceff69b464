// A store that does not answer under producers that do not stop: what the worker holds stays under its bound and the
// producers wait; when the store answers again, everything that was taken is settled. What this does not show: the
// kernel's buffers of the connections, which no figure of a process holds, and results larger than a sum.
#include <doctest/doctest.h>

#include <deque>

#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"
#include "support/sanitized.hpp"
#include "support/stalled_store.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// What docs/operations.md allows a worker with the default limits and 64 senders, caches included.
constexpr std::size_t worker_mib_max = 512;
constexpr std::size_t producers = 64;

Bytes batch_of(const SenderId &sender, const std::vector<Bytes> &jobs) {
  std::vector<wire::BatchEntry> entries;
  entries.reserve(jobs.size());
  for (const Bytes &job : jobs) {
    entries.push_back(
        {.sequence = Sequence{entries.size() + 1}, .tag = tag_of(job), .attempt = 1, .issued_at = {}, .job = job});
  }
  Bytes message;
  wire::encode_batch(sender, entries, message);
  REQUIRE(message.size() <= limits::message_bytes_max);
  REQUIRE(message.size() > limits::message_bytes_max - 64UL * 1024);
  return message;
}

// As many deliveries as a message may have, each as long as there is room for.
Bytes many_jobs(const SenderId &sender, const std::string &name) {
  std::vector<Bytes> jobs;
  jobs.reserve(limits::deliveries_per_message_max);
  for (std::size_t job = 0; job < limits::deliveries_per_message_max; ++job) {
    std::string id = name + "-" + std::to_string(job);
    id.resize(205, '.');
    jobs.push_back(job_bytes(id, {1}));
  }
  return batch_of(sender, jobs);
}

// Two deliveries, the first as large as a sum may be.
Bytes large_jobs(const SenderId &sender, const std::string &name) {
  constexpr std::int64_t nine_bytes = INT64_C(1) << 40U;
  return batch_of(sender, {job_bytes(name, std::vector<std::int64_t>(limits::sum_numbers_max, nine_bytes)),
                           job_bytes(name + "-", std::vector<std::int64_t>(50'000, nine_bytes))});
}

enum class Form { many_jobs, large_jobs };

// A producer that sends one message over and over, as fast as the socket takes it, and reads no reply.
class Flood {
public:
  Flood(zmq::context_t &context, const WorkerProcess &worker, const SenderId &sender, Form form)
      : jobs_(context, zmq::socket_type::push), replies_(context, zmq::socket_type::dealer),
        deliveries_(form == Form::many_jobs ? limits::deliveries_per_message_max : 2),
        message_(form == Form::many_jobs ? many_jobs(sender, to_hex(sender.view()))
                                         : large_jobs(sender, to_hex(sender.view()))) {
    jobs_.set(zmq::sockopt::sndhwm, 1);
    replies_.set(zmq::sockopt::rcvhwm, 1);
    jobs_.set(zmq::sockopt::linger, 0);
    replies_.set(zmq::sockopt::linger, 0);
    jobs_.connect(worker.jobs());
    replies_.connect(worker.replies());
    const Bytes hello = wire::encode_hello(sender);
    replies_.send(zmq::const_buffer(hello.data(), hello.size()), zmq::send_flags::none);
  }

  void push() {
    while (jobs_.send(zmq::const_buffer(message_.data(), message_.size()), zmq::send_flags::dontwait))
      ++accepted_;
  }
  [[nodiscard]] std::size_t accepted() const { return accepted_; }
  [[nodiscard]] std::size_t accepted_deliveries() const { return accepted_ * deliveries_; }
  [[nodiscard]] std::size_t jobs() const { return deliveries_; }

private:
  zmq::socket_t jobs_;
  zmq::socket_t replies_;
  std::size_t deliveries_;
  Bytes message_;
  std::size_t accepted_ = 0;
};

struct Sum {
  std::size_t messages = 0;
  std::size_t deliveries = 0;
  std::size_t jobs = 0;
};

Sum sum_of(const std::deque<Flood> &floods) {
  Sum sum;
  for (const Flood &flood : floods) {
    sum.messages += flood.accepted();
    sum.deliveries += flood.accepted_deliveries();
    sum.jobs += flood.jobs();
  }
  return sum;
}

std::size_t figure(const WorkerProcess &worker, const std::string &name) {
  return std::stoul(run_command({"stats", "--data", worker.data().string()}).line()[name]);
}

} // namespace

TEST_CASE("64 producers that flood a worker whose store has stopped wait and its memory stays under its bound") {
  if (sanitized) {
    MESSAGE("skipped: beside a sanitizer");
    return;
  }
  WorkerProcess worker;
  worker.start();
  StalledStore stalled(worker.process().id());
  if (!stalled.is_stalled()) {
    MESSAGE("skipped: there is no strace that may trace");
    return;
  }
  zmq::context_t context;
  std::deque<Flood> floods;
  for (std::size_t producer = 1; producer <= producers; ++producer) {
    floods.emplace_back(context, worker, sender_id(static_cast<std::uint8_t>(producer)),
                        producer % 2 == 0 ? Form::many_jobs : Form::large_jobs);
  }
  // Longer than a connection without heartbeats is kept: one that is made anew would bring as much again.
  CHECK(stands_still(std::chrono::seconds{25}, [&] {
    for (Flood &flood : floods)
      flood.push();
    return sum_of(floods).messages;
  }));
  CHECK(figure(worker, "stored") == 0); // it was stalled indeed
  const Sum sent = sum_of(floods);
  MESSAGE(sent.messages << " messages were taken from the producers; the worker held "
                        << resident_max_mib(worker.process().id()) << " MiB");
  CHECK(sent.messages > producers);
  CHECK(resident_max_mib(worker.process().id()) < worker_mib_max);

  stalled.release();
  for (std::size_t settled = 0; settled < sent.deliveries;) {
    const std::size_t before = settled;
    REQUIRE(eventually([&] { return (settled = figure(worker, "deliveries")) > before; }));
  }
  CHECK(figure(worker, "messages") == sent.messages);
  CHECK(eventually([&] { return figure(worker, "stored") == sent.jobs; }));
  RawPeer later(worker);
  later.greet();
  CHECK(later.deliver_one(job_bytes("later", {1})).outcome == Outcome::stored);
  CHECK(resident_max_mib(worker.process().id()) < worker_mib_max);
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{sent.jobs + 1, 0});
}

TEST_CASE("a sender with much more input than it holds waits for a store that has stopped") {
  constexpr std::size_t sender_mib_max = 144; // 64 MiB of jobs, the group in hand, and what keeps account of them
  constexpr std::size_t jobs = 100'000;
  std::string numbers = "0.5"; // each becomes 9 bytes
  for (int number = 1; number < 256; ++number)
    numbers += ",0.5";
  std::string input;
  for (std::size_t job = 1; job <= jobs; ++job)
    input += R"({"operation_id":"job-)" + std::to_string(job) + R"(","numbers":[)" + numbers + "]}\n";

  if (sanitized) {
    MESSAGE("skipped: beside a sanitizer");
    return;
  }
  WorkerProcess worker;
  worker.start();
  StalledStore stalled(worker.process().id());
  if (!stalled.is_stalled()) {
    MESSAGE("skipped: there is no strace that may trace");
    return;
  }
  Process sender({.arguments = worker.send({"--deadline", "10m"}), .input = input});
  REQUIRE(eventually([&] { return input_position(sender.id()) > 0; }));
  CHECK(stands_still(std::chrono::seconds{2}, [&] { return input_position(sender.id()); }));
  CHECK(input_position(sender.id()) < input.size() / 2);
  MESSAGE("the sender held " << resident_max_mib(sender.id()) << " MiB");
  CHECK(resident_max_mib(sender.id()) < sender_mib_max);

  stalled.release();
  for (std::size_t line = 1; line < jobs; ++line)
    REQUIRE(sender.next_line().has_value());
  CHECK(resident_max_mib(sender.id()) < sender_mib_max);
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == 1);
  CHECK(resident_max_mib(worker.process().id()) < worker_mib_max);
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{jobs, 0});
}
