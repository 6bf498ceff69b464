// The input of `send` and what it prints and exits with.
#include <csignal>
#include <deque>
#include <fstream>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

TEST_CASE("a line that is no job is printed with its number and is not sent") {
  WorkerProcess worker;
  worker.start();
  const Finished sent = run_command(worker.send(), "{\"operation_id\":\"a\",\"numbers\":[1]}\n"
                                                   "no json\n"
                                                   "\n"
                                                   "[1]\n"
                                                   "{\"numbers\":[1]}\n"
                                                   "{\"operation_id\":\"b\",\"operation_id\":\"c\",\"numbers\":[1]}\n"
                                                   "{\"operation_id\":\"a\",\"numbers\":[1]} {}\n"
                                                   "{\"operation_id\":\"d\",\"numbers\":[2]}"); // without its end
  CHECK(sent.exit == 1);
  const auto lines = sent.lines();
  std::map<std::string, std::string> refused; // the detail by the line's number
  for (const Line &line : lines) {
    if (line["line"] == "absent") continue;
    CHECK(line.names() == "line outcome detail");
    CHECK(line["outcome"] == "invalid");
    refused[line["line"]] = line["detail"];
  }
  CHECK(refused.size() == 5);
  CHECK(refused["2"].find("not JSON") != std::string::npos);
  CHECK(refused["4"] == "not_a_map");
  CHECK(refused["5"] == "no_operation_id");
  CHECK(refused["6"] == "duplicate_name");
  CHECK(refused["7"].find("not JSON") != std::string::npos);
  CHECK(tally(lines, "operation_id")["a"] == 1);
  CHECK(tally(lines, "operation_id")["d"] == 1);
  CHECK(worker.rows() == Rows{2, 0}); // none of them has become a dead letter
}

TEST_CASE("a byte order mark before the first line is no part of it, whether that line is a job or blank") {
  WorkerProcess worker;
  worker.start();
  const std::string mark = "\xEF\xBB\xBF";
  for (const std::string before : {"", "\n", " \r\n"}) {
    const Finished sent = run_command(worker.send(), mark + before + jobs_as_json("job", 1));
    CHECK(sent.exit == 0);
    CHECK(sent.lines().size() == 1);
  }
}

TEST_CASE("a job that is spread over lines is refused with a hint at what makes it one line") {
  WorkerProcess worker;
  worker.start();
  const Finished sent = run_command(worker.send(), "{\n  \"operation_id\": \"a\",\n  \"numbers\": [\n    1\n  ]\n}\n");
  CHECK(sent.exit == 1);
  CHECK(sent.errors.find("each line must be one whole job") != std::string::npos);
  CHECK(sent.errors.find("jq -c .") != std::string::npos);
  CHECK(run_command(worker.send(), "no json\n").errors.empty());
}

TEST_CASE("integers beyond 64 bits are refused and never rounded") {
  WorkerProcess worker;
  worker.start();
  const auto job = [](const std::string &id, const std::string &number) {
    return "{\"operation_id\":\"" + id + "\",\"numbers\":[" + number + "]}\n";
  };
  const Finished sent =
      run_command(worker.send(), job("1", "18446744073709551616") + job("2", "-9223372036854775809") +
                                     job("3", "1" + std::string(400, '0')) + job("4", "1e999") +
                                     job("5", "-9223372036854775808") + job("6", "18446744073709551616.0"));
  CHECK(sent.exit == 1);
  std::map<std::string, std::string> refused;
  for (const Line &line : sent.lines())
    if (line["line"] != "absent") refused[line["line"]] = line["detail"];
  CHECK(refused["1"] == "number beyond 64 bits");
  CHECK(refused["2"] == "number beyond 64 bits");
  CHECK(refused.contains("3"));
  CHECK(refused.contains("4"));
  CHECK(refused.size() == 4);
  CHECK(worker.rows() == Rows{2, 0}); // 5 fits, and 6 says that it is a float
}

TEST_CASE("as many numbers as may be are added and one more is invalid") {
  WorkerProcess worker;
  worker.start({"--workers", "1"}); // which answers in the order of the lines
  std::string numbers;
  for (std::size_t number = 0; number < limits::sum_numbers_max; ++number)
    numbers += numbers.empty() ? "1" : ",1";
  const Finished sent =
      run_command(worker.send(), "{\"operation_id\":\"many\",\"numbers\":[" + numbers + "]}\n" +
                                     "{\"operation_id\":\"too many\",\"numbers\":[" + numbers + ",1]}\n");
  CHECK(sent.exit == 1);
  const auto lines = sent.lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["result"] == std::to_string(limits::sum_numbers_max));
  CHECK(lines[1]["outcome"] == "invalid");
}

TEST_CASE("jobs come from a named file and from standard input") {
  const ScratchDirectory directory;
  WorkerProcess worker;
  worker.start();
  const std::string file = (directory.path() / "jobs.jsonl").string();
  std::ofstream(file) << jobs_as_json("file", 3);
  CHECK(run_command(worker.send({file})).lines().size() == 3);
  CHECK(run_command(worker.send({"-"}), jobs_as_json("dash", 2)).lines().size() == 2);
  const Finished nothing = run_command(worker.send());
  CHECK(nothing.exit == 0);
  CHECK(nothing.output.empty());
  CHECK(worker.rows() == Rows{5, 0});
}

TEST_CASE("jobs that no worker takes are unsettled at the deadline with exit code 75") {
  const WorkerProcess nobody;
  const Finished sent = run_command(nobody.send({"--deadline", "200ms"}), jobs_as_json("job", 2));
  CHECK(sent.exit == 75);
  CHECK(field_of(sent.lines(), "outcome") == "unsettled unsettled");
  CHECK(field_of(sent.lines(), "operation_id") == "job-1 job-2");
  CHECK(sent.errors.find("2 unsettled") != std::string::npos);
  CHECK(run_command(nobody.send({"--deadline", "200ms", "--raw-message"}), "x").exit == 75);
}

namespace {

// Listens at a port of its own, and says this to everybody who connects.
class OtherServer {
public:
  explicit OtherServer(std::string says)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), thread_([this, says] { serve(says); }) {}
  ~OtherServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (const int peer : peers_)
      ::close(peer);
    ::close(listener_);
  }
  OtherServer(const OtherServer &) = delete;
  OtherServer &operator=(const OtherServer &) = delete;

  [[nodiscard]] std::string endpoint() const { return "tcp://127.0.0.1:" + std::to_string(port_); }

private:
  static std::uint16_t listen_at(int listener) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto *const generic = reinterpret_cast<sockaddr *>(&address);
    REQUIRE(::bind(listener, generic, size) == 0);
    REQUIRE(::listen(listener, 16) == 0);
    REQUIRE(::getsockname(listener, generic, &size) == 0);
    return ntohs(address.sin_port);
  }
  void serve(const std::string &says) {
    for (int peer = ::accept(listener_, nullptr, nullptr); peer >= 0; peer = ::accept(listener_, nullptr, nullptr)) {
      peers_.push_back(peer);
      static_cast<void>(::send(peer, says.data(), says.size(), MSG_NOSIGNAL));
    }
  }

  int listener_;
  std::uint16_t port_ = listen_at(listener_);
  std::vector<int> peers_; // the thread's, until it has ended
  std::thread thread_;     // last: it uses the others
};

// Sends one job in vain for some seconds. The command says why after 2 s, and at the end.
class InVain {
public:
  InVain(const Arguments &send, std::string cause, std::string about)
      : cause_(std::move(cause)), about_(std::move(about)),
        sender_({.arguments = send + Arguments{"--deadline", "4s", "--log-format", "json"},
                 .input = jobs_as_json("job", 1)}) {}

  void check() {
    CAPTURE(cause_);
    CAPTURE(about_);
    const Finished sent = finish(sender_);
    CHECK(sent.exit == 75);
    const Line line = sent.line();
    CHECK(line["outcome"] == "unsettled");
    CHECK(line["cause"] == cause_);
    CHECK(line["detail"].find(about_) != std::string::npos);
    const std::size_t told_at = sent.errors.find(R"("event":"send.waits")");
    REQUIRE_MESSAGE(told_at != std::string::npos, sent.errors);
    CHECK(sent.errors.find(R"("cause":")" + cause_ + '"', told_at) != std::string::npos);
    CHECK(sent.errors.find("1 unsettled: " + line["detail"]) != std::string::npos);
  }

private:
  std::string cause_;
  std::string about_;
  Process sender_;
};

} // namespace

TEST_CASE("a job that does not settle says what keeps it") {
  WorkerProcess worker;
  worker.start();
  WorkerProcess stopped;
  stopped.start();
  stopped.process().signal(SIGSTOP);
  const OtherServer ssh("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
  const OwnPort nobody;
  const auto send = [](const std::string &jobs, const std::string &replies) {
    return Arguments{"send", "--jobs", jobs, "--replies", replies};
  };
  std::deque<InVain> senders; // at the same time, as each takes seconds
  senders.emplace_back(send(nobody.endpoint(), nobody.endpoint()), "no_worker", nobody.endpoint());
  senders.emplace_back(send(nobody.endpoint(), worker.replies()), "no_worker", nobody.endpoint());
  senders.emplace_back(send(worker.replies(), worker.jobs()), "not_a_worker", "exchanged");
  senders.emplace_back(send(worker.jobs(), ssh.endpoint()), "no_answer", ssh.endpoint());
  senders.emplace_back(send(ssh.endpoint(), worker.replies()), "no_answer", ssh.endpoint());
  senders.emplace_back(stopped.send(), "no_answer", stopped.replies());
  for (InVain &sender : senders)
    sender.check();
  stopped.process().signal(SIGCONT);
}

TEST_CASE("exit code 75 outranks 1") {
  const WorkerProcess nobody;
  const Finished sent = run_command(nobody.send({"--deadline", "200ms"}), "no json\n" + jobs_as_json("job", 1));
  CHECK(sent.exit == 75);
  CHECK(field_of(sent.lines(), "outcome") == "invalid unsettled");
}

TEST_CASE("text of every script comes back as it was sent") {
  WorkerProcess worker;
  worker.start();
  const std::string id = "\xC3\x9C \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80";
  const Finished sent = run_command(worker.send(), "{\"operation_id\":\"" + id + "\\u0000\\\"\",\"numbers\":[1]}\n");
  CHECK(sent.exit == 0);
  CHECK(sent.line()["operation_id"] == id + std::string("\0\"", 2));
}

TEST_CASE("a window of one job at a time settles them all") {
  WorkerProcess worker;
  worker.start();
  const Finished sent = run_command(worker.send({"--window", "1"}), jobs_as_json("job", 50));
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == 50);
  CHECK(worker.rows() == Rows{50, 0});
}
