// Verifies that nothing of this process leaks into a command, that neither it nor what it starts outlives the worker
// unseen, and that commands of several threads do not meet.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/file_content.hpp"
#include "unit/runner/command_bench.hpp"

namespace onced::runner::testing {
namespace {

using onced::testing::files_in;

// Runs this in a thread whose system calls of these numbers fail, as in a sandbox or on an older kernel.
void run_without(const std::vector<int> &calls, int error, const std::function<void()> &run) {
  std::thread([&] {
    std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
    for (const int call : calls) {
      filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
      filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
    }
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    REQUIRE(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    run();
  }).join();
}

} // namespace

TEST_CASE("a command has no blocked and no ignored signal whatever this process has") {
  CommandBench bench;
  bench.options.arguments = {"/bin/grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"};
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto pipe_before = std::signal(SIGPIPE, SIG_IGN);
  const CommandEnd end = bench.run();
  const bool still_ignored = std::signal(SIGPIPE, pipe_before) == SIG_IGN;
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, &before, &now);
  CHECK(still_ignored);
  CHECK(sigismember(&now, SIGTERM) == 1);
  CHECK(sigismember(&now, SIGUSR1) == 0);
  CHECK(end.output == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_CASE("a command has its three streams and the lock and no other descriptor") {
  CommandBench bench;
  const Descriptor leaky(::open("/dev/null", O_RDONLY)); // not closed by exec
  const Descriptor high(::fcntl(leaky.number(), F_DUPFD, 300));
  REQUIRE(high.is_open());
  bench.options.arguments = {"/bin/ls", "/proc/self/fd"};
  const Lines lines = lines_of(bench.run().output);
  std::set<int> numbers;
  for (const std::string &line : lines)
    numbers.insert(std::stoi(line));
  REQUIRE(numbers.size() == 5);
  CHECK(std::set<int>(numbers.begin(), std::prev(numbers.end())) == std::set<int>{0, 1, 2, 3}); // 3: ls's own
  CHECK(*numbers.rbegin() >= 100);
}

TEST_CASE("a command leads a process group of its own") {
  CommandBench bench;
  const Lines lines = lines_of(bench.run("cut -d ' ' -f 1 /proc/$$/stat; cut -d ' ' -f 5 /proc/$$/stat").output);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == lines[1]);
}

TEST_CASE("a command starts where this process has closed its standard streams") {
  CommandBench bench;
  bench.job.input = "input";
  const Descriptor input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10));
  ::close(STDIN_FILENO);
  const CommandEnd end = bench.run("cat; echo note >&2");
  if (input.is_open()) ::dup2(input.number(), STDIN_FILENO);
  CHECK(end.output == "input");
  CHECK(end.errors == "note\n");
}

TEST_CASE("a command dies with the worker and what it has started holds the lock on") {
  CommandBench bench;
  bench.script("sleep 1000 & echo $$ > $DIR/self; echo $! > $DIR/new; mv $DIR/new $DIR/started; wait");
  auto worker = ChildProcess::start_copy([&bench] {
    const auto command = Command::start(bench.options, bench.job, bench.clock);
    if (command) ::pause();
    return 1;
  });
  REQUIRE(worker.has_value());
  const bool has_started = eventually([&] { return !first_line_of(bench.file("started")).empty(); });
  worker->kill();
  worker->wait();
  REQUIRE(has_started);
  const pid_t self = std::stoi(first_line_of(bench.file("self")));
  const pid_t started = std::stoi(first_line_of(bench.file("started")));
  CHECK(eventually([&] { return is_gone(self); }));
  CHECK_FALSE(is_gone(started));
  CHECK_FALSE(bench.is_free());
  ::kill(started, SIGKILL);
  CHECK(bench.becomes_free());
}

TEST_CASE("commands of several threads do not hold each other's locks and pipes") {
  std::atomic<int> done{0};
  std::vector<std::thread> executors;
  for (int executor = 0; executor < 4; ++executor) {
    executors.emplace_back([&done] {
      for (int round = 0; round < 10; ++round) {
        CommandBench bench;
        bench.script("cat");
        bench.job.input = "input";
        auto command = Command::start(bench.options, bench.job, bench.clock);
        const bool is_right = command && (*command)->run({}).output == "input" && bench.becomes_free();
        done += is_right ? 1 : 0;
      }
    });
  }
  for (std::thread &executor : executors)
    executor.join();
  CHECK(done == 40);
}

TEST_CASE("without pidfd_open and close_range and memfd_create a command is run and ended as with them") {
  const int leaked = ::open("/dev/null", O_RDONLY); // without O_CLOEXEC
  for (const std::vector<int> &calls :
       std::vector<std::vector<int>>{{SYS_pidfd_open},
                                     {SYS_close_range},
                                     {SYS_memfd_create},
                                     {SYS_pidfd_open, SYS_close_range, SYS_memfd_create}}) {
    for (const int error : {ENOSYS, EPERM}) {
      CAPTURE(calls.size());
      CAPTURE(calls.front());
      CAPTURE(error);
      run_without(calls, error, [&] {
        CommandBench bench;
        bench.job.input = "{\"a\":1}";
        const CommandEnd end = bench.run("cat; echo x >> /proc/self/fd/0; ls /proc/self/fd | wc -l");
        CHECK(end.outcome == EndsAs::done);
        CHECK(end.output == "{\"a\":1}5\n"); // the streams, the lock, and the one of ls
        const bool sealed = std::find(calls.begin(), calls.end(), SYS_memfd_create) == calls.end();
        if (sealed) CHECK(end.errors != "");          // nobody can write to the input
        CHECK(files_in(bench.directory.path()) == 1); // the lock
        CHECK(bench.is_free());
        CHECK(bench.run("exit 65").outcome == EndsAs::refused);
        bench.options.deadline = 100ms;
        CHECK(bench.run("sleep 1000").cause.find("deadline") != std::string::npos);
      });
    }
  }
  ::close(leaked);
}

TEST_CASE("a command has the soft limit of open files that it is given and no other") {
  CommandBench bench;
  const CommandEnd own = bench.run("ulimit -Sn; ulimit -Hn");
  bench.options.descriptors_max = 256;
  const Lines given = lines_of(bench.run("ulimit -Sn; ulimit -Hn").output);
  REQUIRE(given.size() == 2);
  CHECK(given[0] == "256");
  CHECK(given[1] == lines_of(own.output).at(1));
}

} // namespace onced::runner::testing
