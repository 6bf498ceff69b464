// Strangers at the worker's sockets, and at a sender's: who claims another's id, who connects and says nothing or
// garbage, who plays a worker. No job is lost, none is settled by what a stranger says, and no descriptor is kept. What
// this does not show: strangers by the thousand, or one that fills the network; who can connect can still send jobs.
#include <doctest/doctest.h>

#include <array>
#include <deque>
#include <fstream>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sender/outbox.hpp"
#include "support/impostor.hpp"
#include "support/job_bytes.hpp"
#include "support/process_figures.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A tcp connection that says these bytes, and then nothing.
class TcpStranger {
public:
  TcpStranger(const std::string &endpoint, BytesView says) : tcp_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(tcp_, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
    REQUIRE(::send(tcp_, says.data(), says.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(says.size()));
  }
  ~TcpStranger() { ::close(tcp_); }
  TcpStranger(const TcpStranger &) = delete;
  TcpStranger &operator=(const TcpStranger &) = delete;

  // From now on its end is a reset, not a close.
  void end_by_reset() const {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(tcp_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

private:
  int tcp_;
};

// What half-open and garbled connections say, from nothing to the half of a frame (ZMTP 3.0).
std::vector<Bytes> beginnings() {
  Bytes greeting("\xFF\0\0\0\0\0\0\0\0\x7F\x03\0NULL", 16);
  greeting.resize(64, '\0');
  const Bytes ready = Bytes("\x04\x1A\x05READY\x0BSocket-Type\0\0\0\x04PUSH", 28);
  return {{},
          greeting.substr(0, 5),
          greeting.substr(0, 32),
          "GET / HTTP/1.1\r\nHost: onced\r\n\r\n",
          greeting + Bytes(200, '\xEE'),
          greeting + ready + Bytes("\x00\x64half", 6)};
}

// Says all that a stranger could of one job. Two of these are replies to no job of the sender's, five are no replies.
void forge(Impostor &impostor, const wire::BatchEntry &job) {
  Tag other = job.tag;
  other.bytes[0] ^= 1U;
  impostor.say(impostor.frame_of(job.sequence, other, Outcome::stored));
  impostor.say(impostor.frame_of(Sequence{number_of(job.sequence) + 1'000'000}, job.tag, Outcome::stored));

  constexpr auto unknown = static_cast<Outcome>(outcome_table.size());
  impostor.say(impostor.frame_of(job.sequence, job.tag, unknown));
  const Bytes whole = impostor.frame_of(job.sequence, job.tag, Outcome::stored);
  impostor.say(whole.substr(0, whole.size() - 1));
  impostor.say(whole.substr(0, whole.size() / 2));
  impostor.say(whole + "x");
  Bytes other_version = whole;
  other_version[1] = '\x02';
  impostor.say(other_version);
}

// Each told as a success with its own result: jobs_as_json gives job N the numbers N and 1.
void check_own_results(const std::vector<Line> &lines) {
  for (const Line &line : lines) {
    const std::string id = line["operation_id"];
    CAPTURE(id);
    CHECK((line["outcome"] == "stored" || line["outcome"] == "duplicate"));
    CHECK(line["result"] == std::to_string(std::stoull(id.substr(id.rfind('-') + 1)) + 1));
  }
}

} // namespace

TEST_CASE("a stranger that claims a sender's id and forges its jobs and replies settles none of the sender's jobs") {
  constexpr std::size_t rounds = 10;
  constexpr std::size_t jobs = 50;
  WorkerProcess worker;
  ScratchDirectory temp;
  const auto outbox = temp.path() / "outbox";
  const Arguments send = worker.send({"--outbox", outbox.string(), "--acknowledgement-timeout", "100ms"});
  CHECK(run_command(send).exit == 0); // makes the outbox
  const SenderId claimed = sender::Outbox::open(outbox, SenderId{}).value()->id();
  // So that replies to the stranger's jobs come while the sender waits for those to its own.
  worker.start({"--delay-replies", "30ms"});
  RawPeer stranger(worker, claimed);
  Process sender({.arguments = send + Arguments{"-"}, .input = std::nullopt});
  std::vector<Line> lines;
  for (std::size_t round = 0; round < rounds; ++round) {
    // In every other round the replies go to the stranger, until the sender greets again; else all go to the sender.
    if (round % 2 == 1) stranger.say(wire::encode_hello(claimed));
    for (std::uint64_t job = 1; job <= jobs; ++job) {
      wire::RepliesEncoder forged(BootId{}, Durability::fsync);
      const Bytes result = integer_result(999'999);
      forged.add({.sequence = Sequence{round * jobs + job},
                  .tag = {},
                  .outcome = Outcome::stored,
                  .result = result,
                  .detail = {}});
      stranger.say(forged.take().front());
    }
    const std::string number = std::to_string(round + 1);
    // Under the sequences that the sender's next jobs have.
    std::vector<Bytes> forged_jobs(jobs, job_bytes("stranger-" + number, {999'999}));
    forged_jobs.back() = "no job";
    stranger.send_batch(forged_jobs, round * jobs + 1);
    sender.write_input(jobs_as_json("round-" + number, jobs));
    for (std::size_t job = 0; job < jobs; ++job)
      lines.emplace_back(sender.next_line().value());
  }
  sender.end_input();
  CHECK(finish(sender).exit == 0);
  check_own_results(lines);
  const Line stats = run_command({"stats", "--data", worker.data().string()}).line();
  CHECK(stats["malformed_peer_messages"] == std::to_string(rounds * jobs));
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{rounds * jobs + rounds, 1});
}

TEST_CASE("a stranger that knows a sender's id and guesses its jobs cannot have the worker settle them otherwise") {
  constexpr std::size_t jobs = 200;
  WorkerProcess worker;
  ScratchDirectory temp;
  const auto outbox = temp.path() / "outbox";
  const Arguments send = worker.send({"--outbox", outbox.string(), "--acknowledgement-timeout", "100ms"});
  CHECK(run_command(send).exit == 0); // makes the outbox
  const SenderId claimed = sender::Outbox::open(outbox, SenderId{}).value()->id();
  // Replies are late, so that those to the stranger come when the sender has sent its own.
  worker.start({"--workers", "1", "--delay-replies", "100ms"});
  Process sender({.arguments = send + Arguments{"-"}, .input = std::nullopt});
  const auto stats_of_worker = [&] { return run_command({"stats", "--data", worker.data().string()}).line(); };
  REQUIRE(eventually([&] { return stats_of_worker()["greetings"] != "0"; }));
  RawPeer stranger(worker, claimed);
  for (std::uint64_t job = 1; job <= jobs; ++job) {
    const std::string id = "job-" + std::to_string(job);
    const Tag guessed = tag_of(job_bytes(id, {static_cast<std::int64_t>(job), 1})); // as the sender will encode it
    stranger.send_forged(job_bytes(id, {999'999}), job, guessed);
    stranger.send_forged("no job", job, guessed);
    stranger.send_forged(job_bytes("known", {1}), job, guessed);
  }
  sender.write_input(jobs_as_json("job", jobs));
  sender.end_input();
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == jobs);
  check_own_results(sent.lines());
  CHECK(stats_of_worker()["tag_mismatches"] == std::to_string(3 * jobs));
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{jobs, 0});
}

TEST_CASE("a delivery with the tag of other bytes is busy by itself and leaves no row and no dead letter") {
  WorkerProcess worker;
  worker.start({"--workers", "1"});
  RawPeer peer(worker);
  peer.greet();
  const Bytes job = job_bytes("a", {1});
  CHECK(outcomes_of(peer.deliver({job})) == "stored");
  for (const Bytes &bytes : {job, job_bytes("b", {1}), Bytes("no job")}) { // in the cache, absent, and no job
    Tag other = tag_of(bytes);
    other.bytes[7] ^= 1U;
    peer.send_forged(bytes, 77, other);
    const auto replies = peer.next_replies();
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].sequence == 77);
    CHECK(replies[0].tag == other);
    CHECK(replies[0].outcome == Outcome::busy);
    CHECK(replies[0].detail == "tag_mismatch");
  }
  CHECK(outcomes_of(peer.deliver({job})) == "duplicate");
  CHECK(worker.rows() == Rows{1, 0});
}

TEST_CASE("messages on the wrong socket are counted and logged and those to the jobs socket are kept as dead letters") {
  WorkerProcess worker;
  worker.start({"--log-format", "json"});
  RawPeer peer(worker);
  peer.greet();
  Bytes batch;
  wire::encode_batch(sender_id(0x11), {}, batch);
  for (const Bytes &jobs : {batch, job_bytes("a", {1})})
    peer.say(jobs);
  peer.send(wire::encode_hello(sender_id(0x11)));
  peer.say("neither");
  const auto stats = [&] { return run_command({"stats", "--data", worker.data().string()}).line(); };
  CHECK(eventually([&] { return stats()["wrong_socket"] == "3" && stats()["malformed_peer_messages"] == "3"; }));
  const std::string log = worker.process().errors();
  CHECK(log.find(R"("event":"peer.wrong_socket","socket":"replies","message":"jobs")") != std::string::npos);
  CHECK(log.find(R"("event":"peer.wrong_socket","socket":"jobs","message":"hello")") != std::string::npos);
  CHECK(worker.rows() == Rows{0, 1});
}

TEST_CASE("connections by the hundred that are half open or garbled or reset keep no sender out and no descriptor") {
  constexpr std::size_t each = 40;
  WorkerProcess worker;
  worker.start();
  const pid_t process = worker.process().id();
  CHECK(run_command(worker.send(), jobs_as_json("before", 1)).exit == 0);
  std::size_t files = 0;
  CHECK(eventually([&] { return std::exchange(files, open_files(process)) == open_files(process); }));

  std::deque<TcpStranger> strangers;
  for (std::size_t times = 0; times < each; ++times) {
    for (const Bytes &says : beginnings()) {
      strangers.emplace_back(worker.jobs(), says);
      strangers.emplace_back(worker.replies(), says);
    }
  }
  CHECK(eventually([&] { return open_files(process) > files + strangers.size() / 2; })); // most are held open
  const Finished beside = run_command(worker.send(), jobs_as_json("beside", 2000));
  CHECK(beside.exit == 0);
  check_own_results(beside.lines());

  // Under the jobs of a sender one half goes with a reset, and the other with a close.
  Process sender({.arguments = worker.send({"--window", "64"}), .input = jobs_as_json("after", 2000)});
  for (bool by_reset = true; !strangers.empty(); by_reset = !by_reset) {
    if (by_reset) strangers.back().end_by_reset();
    strangers.pop_back();
  }
  const Finished after = finish(sender);
  CHECK(after.exit == 0);
  check_own_results(after.lines());
  CHECK(eventually([&] { return open_files(process) <= files; }));
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{4001, 0});
}

TEST_CASE("what a stranger in the place of the worker forges settles nothing and the worker that follows settles all") {
  constexpr std::size_t jobs = 100;
  WorkerProcess worker;
  auto impostor = std::make_unique<Impostor>(worker);
  Process sender(
      {.arguments = worker.send({"--stats", "--acknowledgement-timeout", "20s"}), .input = jobs_as_json("job", jobs)});
  impostor->greet_next();
  std::size_t taken = 0;
  while (taken < jobs) {
    for (const wire::BatchEntry &job : impostor->next_batch().entries) {
      forge(*impostor, job);
      ++taken;
    }
  }
  // A new boot makes it send again, and is heard after all that was forged.
  impostor->greet_as_new_boot();
  CHECK(impostor->next_batch().entries.front().attempt == 2);
  CHECK(sender.errors().find("reply.malformed") != std::string::npos);
  impostor.reset();
  worker.start();
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  auto lines = sent.lines();
  REQUIRE(lines.size() == jobs + 1);
  CHECK(lines.back()["ignored_replies"] == std::to_string(2 * jobs));
  lines.pop_back();
  check_own_results(lines);
  CHECK(worker.rows() == Rows{jobs, 0});
}
