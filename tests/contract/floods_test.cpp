// One peer's flood and the others: of large bad jobs, of hellos with another's id or with random ones, of queries, of
// answers that nobody reads. Each has what it had without the flood. What this does not show: how long it takes
// (tests/floods measures that).
#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <thread>

#include "base/messagepack.hpp"
#include "onced/limits.hpp"
#include "support/job_bytes.hpp"
#include "support/process_figures.hpp"
#include "support/raw_peer.hpp"
#include "support/sanitized.hpp"
#include "wire/query.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

Bytes query_request(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  Bytes request;
  messagepack::Writer writer(request);
  writer.map(fields.size());
  for (const auto &[name, value] : fields)
    writer.string(name).string(value);
  return request;
}

Bytes ask_worker(const WorkerProcess &worker, const Bytes &request) {
  return wire::ask(worker.replies(), request, patience_from_now()).value();
}

// A number of `stats`.
std::uint64_t stats_figure(const WorkerProcess &worker, std::string_view name) {
  const Bytes answer = ask_worker(worker, query_request({{"query", "stats"}}));
  std::vector<messagepack::Token> tokens;
  REQUIRE(messagepack::tokenize(answer, tokens, 1000));
  for (std::size_t at = 0; at + 1 < tokens.size(); ++at) {
    if (tokens[at].kind == messagepack::Kind::string && tokens[at].bytes == name) return tokens[at + 1].number;
  }
  FAIL("no such figure");
  return 0;
}

zmq::socket_t connected_peer(zmq::context_t &context, zmq::socket_type type, const std::string &endpoint) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, 2);
  socket.connect(endpoint);
  return socket;
}

// Whether ZeroMQ has taken it; without, the pipe is full.
bool try_to_send(zmq::socket_t &socket, BytesView frame) {
  return socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait).has_value();
}

// What a thread of its own does until the end.
class PeerFlood {
public:
  template <class Run> explicit PeerFlood(Run run) : thread_([this, run] { run(stop_); }) {}
  ~PeerFlood() {
    stop_ = true;
    thread_.join();
  }
  PeerFlood(const PeerFlood &) = delete;
  PeerFlood &operator=(const PeerFlood &) = delete;

private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Eight connections send bad jobs of almost 1 MiB, each another, as fast as they are taken.
void send_large_bad_jobs(const WorkerProcess &worker, const std::atomic<bool> &stop) {
  zmq::context_t context;
  std::deque<zmq::socket_t> sockets;
  for (int connection = 0; connection < 8; ++connection)
    sockets.push_back(connected_peer(context, zmq::socket_type::push, worker.jobs()));
  for (std::uint64_t number = 0; !stop; ++number) {
    Bytes bad(1024 * 1000, '\xC1');
    bad.replace(1, 8, reinterpret_cast<const char *>(&number), 8);
    while (!stop && !try_to_send(sockets[number % sockets.size()], bad))
      std::this_thread::yield();
  }
}

// Two peers ask for counts as fast as their queries are taken.
void ask_for_counts(const WorkerProcess &worker, const std::atomic<bool> &stop) {
  zmq::context_t context;
  std::deque<zmq::socket_t> peers;
  for (int peer = 0; peer < 2; ++peer)
    peers.push_back(connected_peer(context, zmq::socket_type::dealer, worker.replies()));
  const Bytes count = wire::encode_query(SenderId{}, query_request({{"query", "count"}}));
  while (!stop) {
    for (zmq::socket_t &peer : peers) {
      zmq::message_t answer;
      try_to_send(peer, count);
      while (peer.recv(answer, zmq::recv_flags::dontwait)) {
      }
    }
  }
}

} // namespace

TEST_CASE(
    "beside a flood of large bad jobs every good job is stored at its first delivery and few of the bad are kept") {
  constexpr std::size_t jobs = 300;
  WorkerProcess worker;
  worker.start();
  RawPeer good(worker);
  good.greet();
  const auto begun = std::chrono::steady_clock::now();
  std::uint64_t taken = 0;
  std::size_t stored = 0;
  {
    const PeerFlood flood([&](const std::atomic<bool> &stop) { send_large_bad_jobs(worker, stop); });
    for (std::size_t job = 0; job < jobs || (taken = stats_figure(worker, "messages")) < 100; ++job, ++stored)
      CHECK(good.deliver_one(job_bytes("good-" + std::to_string(job), {1})).outcome == Outcome::stored);
  }
  CHECK(worker.stop() == 0);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - begun).count();
  const auto allowed = static_cast<std::uint64_t>(seconds + limits::dead_letter_burst.count()) *
                           limits::dead_letter_bytes_a_second / (1024 * 1000) +
                       4;
  const Rows rows = worker.rows();
  MESSAGE(taken << " messages were taken while " << stored << " good jobs were; " << rows.dead_letters
                << " dead letters, allowed in " << seconds << " s: " << allowed);
  CHECK(rows.results == stored);
  CHECK(rows.dead_letters >= 1);
  CHECK(rows.dead_letters <= allowed);
}

TEST_CASE("strangers that say hello with a sender's id take no replies from it") {
  WorkerProcess worker;
  worker.start();
  RawPeer good(worker);
  good.greet();
  std::deque<RawPeer> strangers;
  for (int stranger = 0; stranger < 8; ++stranger)
    strangers.emplace_back(worker).greet();
  for (int round = 0; round < 20; ++round) {
    for (RawPeer &stranger : strangers)
      stranger.say(wire::encode_hello(sender_id(0x11)));
    CHECK(good.deliver_one(job_bytes("job-" + std::to_string(round), {1})).outcome == Outcome::stored);
  }
  CHECK(worker.stop() == 0);
}

TEST_CASE("a stranger that says hello with ids by the thousand takes no replies from a sender") {
  constexpr std::uint64_t hellos = 3 * limits::known_senders_max;
  WorkerProcess worker;
  worker.start();
  RawPeer good(worker);
  good.greet();
  RawPeer stranger(worker, sender_id(0x22));
  for (std::uint64_t number = 0; number < hellos; ++number) {
    SenderId id = sender_id(0x33);
    for (std::size_t at = 0; at < 8; ++at)
      id.bytes[at] = static_cast<std::uint8_t>(number >> (8 * at));
    stranger.say(wire::encode_hello(id));
  }
  CHECK(eventually([&] { return stats_figure(worker, "greetings") > hellos; }));
  CHECK(good.deliver_one(job_bytes("job", {1})).outcome == Outcome::stored);
  CHECK(worker.stop() == 0);
}

TEST_CASE("while two peers have everything counted without end another reads every row it asks for") {
  constexpr std::size_t rows = 20'000;
  WorkerProcess worker;
  worker.start();
  CHECK(run_command(worker.send({"--deadline", "5m"}), jobs_as_json("row", rows)).exit == 0);
  const std::uint64_t before = stats_figure(worker, "queries");
  {
    const PeerFlood flood([&](const std::atomic<bool> &stop) { ask_for_counts(worker, stop); });
    std::size_t read = 0;
    for (; read < 50 || stats_figure(worker, "queries") < before + 500; ++read) {
      const Bytes answer = ask_worker(worker, query_request({{"query", "get"}, {"operation_id", "row-7"}}));
      CHECK(answer.find("committed") != Bytes::npos);
    }
    MESSAGE(read << " rows were read");
  }
  CHECK(worker.stop() == 0);
}

TEST_CASE("peers that do not read large answers hold one each and the worker's memory stays within its plan") {
  if (sanitized) {
    MESSAGE("skipped: beside a sanitizer");
    return;
  }
  constexpr int peers = 20;
  constexpr int asks = 64;
  WorkerProcess worker;
  worker.start({"--memory", "512MiB"});
  RawPeer producer(worker);
  producer.greet();
  REQUIRE(outcomes_of(producer.deliver({Bytes(1024 * 1000, '\xC1')})) == "invalid");
  const auto letters = dead_letters(worker.data());
  REQUIRE(letters.size() == 1);
  const Bytes request = query_request({{"query", "dead-letters show"}, {"id", std::string(letters.front()["id"])}});
  const Bytes query = wire::encode_query(SenderId{}, request);

  zmq::context_t context;
  std::deque<zmq::socket_t> unread;
  for (int peer = 0; peer < peers; ++peer) {
    zmq::socket_t &socket = unread.emplace_back(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvhwm, 1);
    socket.set(zmq::sockopt::rcvbuf, 4096);
    socket.connect(worker.replies());
  }
  const std::uint64_t before = stats_figure(worker, "queries");
  for (int ask_number = 1; ask_number <= asks; ++ask_number) {
    for (zmq::socket_t &socket : unread)
      socket.send(zmq::const_buffer(query.data(), query.size()), zmq::send_flags::none);
    // Each round when the one before was heard, so that all could be answered.
    const std::uint64_t all = before + static_cast<std::uint64_t>(peers) * static_cast<std::uint64_t>(ask_number);
    REQUIRE(eventually([&] { return stats_figure(worker, "queries") >= all; }));
  }
  CHECK(ask_worker(worker, request).size() > 1024 * 1000);
  MESSAGE("the worker held " << resident_max_mib(worker.process().id()) << " MiB");
  CHECK(resident_max_mib(worker.process().id()) < 512);
  CHECK(worker.stop() == 0);
}
