// Verifies how one command is started, fed, watched and ended, with small programs that behave well and badly: what
// each end means, that nothing of this process leaks into it, and that neither it nor what it starts outlives its end,
// or the worker's, unseen. Not verified here: leases and the store, and that a result is JSON.
#include "runner/command.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scratch_directory.hpp"
#include "runner/job_lock.hpp"
#include "support/eventually.hpp"
#include "support/file_content.hpp"

namespace {

using namespace std::chrono_literals;
using onced::Bytes;
using onced::Descriptor;
using onced::ScratchDirectory;
using onced::runner::Command;
using onced::runner::CommandEnd;
using onced::runner::CommandJob;
using onced::runner::CommandOptions;
using onced::runner::CommandWatch;
using onced::runner::lock_is_free;
using onced::runner::NotStarted;
using onced::testing::eventually;
using onced::testing::files_in;
using Lines = std::vector<std::string>;
using EndsAs = CommandEnd::Outcome;
using Reason = NotStarted::Reason;

Lines lines_of(const std::string &text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

// Empty where there is none yet.
std::string content_of(const std::filesystem::path &file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// Whether it has ended, be it that nobody has waited for it yet.
bool is_gone(pid_t process) {
  std::ifstream stream("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t state = text.rfind(") ");
  return state == std::string::npos || text[state + 2] == 'Z' || text[state + 2] == 'X';
}

// A job, its folder, and a command for it. The folder is $DIR of the command.
struct CommandBench {
  CommandBench() {
    options.environment = {{"PATH", "/usr/bin:/bin"}, {"DIR", directory.path()}};
    options.deadline = onced::testing::patience;
    job.operation_id = "op-1";
    job.idempotency_key = "key-1";
    job.fencing_token = "token-1";
    job.lock_file = directory.path() / "lock";
  }

  void script(const std::string &text) { options.arguments = {"/bin/sh", "-c", text}; }

  CommandEnd run(const CommandWatch &watch = {}) {
    auto command = Command::start(options, job, clock);
    REQUIRE_MESSAGE(command.has_value(), command.error().cause);
    return (*command)->run(watch);
  }
  CommandEnd run(const std::string &text) {
    script(text);
    return run();
  }

  // Why it does not start; it must not.
  NotStarted failure() {
    const auto command = Command::start(options, job, clock);
    REQUIRE_FALSE(command.has_value());
    return command.error();
  }

  // Runs a script in a thread of its own, and asks it to stop when it has made the file `ready`.
  CommandEnd stop_when_ready(const std::string &text) {
    script(text);
    const Descriptor bell(::eventfd(0, EFD_CLOEXEC));
    CommandEnd end;
    std::thread executor([&] { end = run({.stop = bell.number(), .heartbeat = {}, .heartbeat_interval = 1s}); });
    const bool is_ready = eventually([this] { return std::filesystem::exists(file("ready")); });
    const std::uint64_t one = 1;
    const bool rung = ::write(bell.number(), &one, sizeof one) == sizeof one;
    executor.join();
    CHECK(is_ready);
    CHECK(rung);
    return end;
  }

  [[nodiscard]] std::filesystem::path file(const char *name) const { return directory.path() / name; }
  [[nodiscard]] bool is_free() const { return lock_is_free(job.lock_file).value(); }
  [[nodiscard]] bool becomes_free() const {
    return eventually([this] { return is_free(); });
  }

  ScratchDirectory directory;
  onced::SystemClock clock;
  CommandOptions options;
  CommandJob job;
};

// Puts a process that has left the process group, and what a test needs to end it, into a script: its id is printed.
constexpr const char *escape =
    "mkfifo $DIR/fifo; setsid sh -c 'echo $$ > $DIR/fifo; exec sleep 1000' & cat $DIR/fifo; ";

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

TEST_CASE("exit 0 is done with all that was printed") {
  CommandBench bench;
  const CommandEnd end = bench.run("echo '{\"a\":1}'; echo note >&2");
  CHECK(end.outcome == EndsAs::done);
  CHECK(end.output == "{\"a\":1}\n");
  CHECK(end.errors == "note\n");
  CHECK(end.cause.empty());
}

TEST_CASE("exit 65 is refused for good with what it said") {
  CommandBench bench;
  const CommandEnd end = bench.run("echo output; echo 'no such picture' >&2; exit 65");
  CHECK(end.outcome == EndsAs::refused);
  CHECK(end.output.empty());
  CHECK(end.errors == "no such picture\n");
  CHECK(end.cause == "it refused the job (exit code 65)");
}

TEST_CASE("any other exit and a signal are tried again and their causes name them") {
  struct Case {
    std::string script;
    std::string cause;
  };
  const std::vector<Case> cases{{"exit 75", "exit code 75"},
                                {"exit 1", "exit code 1"},
                                {"echo output; exit 255", "exit code 255"},
                                {"kill -9 $$", "killed by signal 9"},
                                {"kill -11 $$", "killed by signal 11"}};
  for (const Case &one : cases) {
    CAPTURE(one.script);
    CommandBench bench;
    const CommandEnd end = bench.run(one.script);
    CHECK(end.outcome == EndsAs::try_again);
    CHECK(end.cause == one.cause);
    CHECK(end.output.empty());
  }
}

TEST_CASE("the input arrives whole however large it is") {
  CommandBench bench;
  Bytes input;
  for (int number = 0; input.size() < 1'000'000; ++number)
    input += std::to_string(number) + '\n';
  bench.job.input = input;
  bench.options.output_bytes_max = input.size();
  const CommandEnd end = bench.run("cat");
  CHECK(end.outcome == EndsAs::done);
  CHECK(end.output == input);
}

TEST_CASE("a command need not read its input") {
  const Bytes input(1'000'000, ' ');
  for (const char *script : {"exit 0", "exec <&-; echo closed; exit 0", "head -c 1 > /dev/null; exit 0"}) {
    CAPTURE(script);
    CommandBench bench;
    bench.job.input = input;
    CHECK(bench.run(script).outcome == EndsAs::done);
  }
}

TEST_CASE("a command cannot change its input") {
  CommandBench bench;
  bench.job.input = "input";
  CHECK(bench.run("printf over 2> /dev/null >&0; cat").output == "input");
}

TEST_CASE("a command gets the listed environment and its job and nothing else") {
  CommandBench bench;
  bench.options.arguments = {"/usr/bin/env"};
  bench.options.environment = {{"GREETING", "hello world"}, {"ONCED_ATTEMPT", "forged"}, {"TRACEPARENT", "forged"}};
  bench.job.attempt = 3;
  Lines lines = lines_of(bench.run().output);
  std::sort(lines.begin(), lines.end());
  Lines expected{"GREETING=hello world", "ONCED_ATTEMPT=3", "ONCED_FENCING_TOKEN=token-1",
                 "ONCED_IDEMPOTENCY_KEY=key-1", "ONCED_OPERATION_ID=op-1"};
  CHECK(lines == expected);

  bench.job.traceparent = "00-1-2-01";
  lines = lines_of(bench.run().output);
  std::sort(lines.begin(), lines.end());
  expected.emplace_back("TRACEPARENT=00-1-2-01");
  CHECK(lines == expected);
}

TEST_CASE("no shell reads the arguments") {
  CommandBench bench;
  bench.options.arguments = {"/bin/echo", "$HOME; exit 1", "*", "a  b"};
  CHECK(bench.run().output == "$HOME; exit 1 * a  b\n");
}

TEST_CASE("a program without a slash is looked for in the listed PATH or in the usual folders") {
  CommandBench bench;
  bench.options.arguments = {"echo", "found"};
  bench.options.environment = {{"PATH", bench.directory.path().string() + "::/bin"}};
  CHECK(bench.run().output == "found\n");
  std::filesystem::create_directory(bench.directory.path() / "echo"); // a folder may be entered, and not run
  CHECK(bench.run().output == "found\n");
  std::filesystem::remove(bench.directory.path() / "echo");
  bench.options.environment.clear();
  CHECK(bench.run().output == "found\n");
  bench.options.environment = {{"PATH", bench.directory.path()}};
  CHECK(bench.failure().cause == "echo cannot be run: No such file or directory");
}

TEST_CASE("what cannot be run is not started and says why and holds no lock") {
  CommandBench bench;
  const auto plain = bench.file("plain");
  std::ofstream(plain) << "echo a shell ran me\n";
  const std::vector<std::pair<std::string, std::string>> failures{
      {"/absent/program", ": No such file or directory"}, {plain, ": Permission denied"}, {"/", ": Permission denied"}};
  for (const auto &[program, cause] : failures) {
    bench.options.arguments = {program};
    const NotStarted failure = bench.failure();
    CHECK(failure.reason == Reason::command);
    CHECK(failure.cause == program + " cannot be run" + cause);
    CHECK(bench.is_free());
  }
  std::filesystem::permissions(plain, std::filesystem::perms::owner_all);
  bench.options.arguments = {plain};
  CHECK(bench.failure().cause == plain.string() + " cannot be run: Exec format error");
}

TEST_CASE("an id that no environment can hold is unfit and a trace context that it cannot hold is the same as none") {
  using namespace std::string_view_literals;
  CommandBench bench;
  bench.script("echo \"[$TRACEPARENT]\"");
  bench.job.traceparent = "00\0-1"sv;
  CHECK(bench.run().output == "[]\n");
  bench.job.operation_id = "op\0-1"sv;
  CHECK(bench.failure().reason == Reason::unfit);
  bench.job.operation_id = "op-1";
  bench.job.idempotency_key = "\0"sv;
  CHECK(bench.failure().reason == Reason::unfit);
}

TEST_CASE("without descriptors or a folder for its lock it is not started") {
  CommandBench bench;
  bench.script("exit 0");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 20;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto command = Command::start(bench.options, bench.job, bench.clock);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_FALSE(command.has_value());
  CHECK(command.error().reason == Reason::command);
  CHECK(bench.is_free());
  bench.job.lock_file = bench.file("absent") / "lock";
  CHECK(bench.failure().reason == Reason::command);
}

TEST_CASE("while somebody holds the job's lock its command is not started") {
  CommandBench bench;
  bench.script("exit 0");
  {
    const auto lock = onced::runner::take_lock(bench.job.lock_file);
    CHECK(bench.failure().reason == Reason::locked);
  }
  CHECK(bench.run().outcome == EndsAs::done);
}

TEST_CASE("a command holds its job's lock from its start to its end") {
  CommandBench bench;
  bench.script("until test -e $DIR/go; do sleep 0.01; done");
  auto command = Command::start(bench.options, bench.job, bench.clock);
  REQUIRE(command.has_value());
  CHECK_FALSE(bench.is_free());
  CHECK(bench.failure().reason == Reason::locked);
  std::ofstream(bench.file("go")) << "";
  CHECK((*command)->run({}).outcome == EndsAs::done);
  CHECK(bench.becomes_free());
}

TEST_CASE("a command that is never run is killed with all that it started") {
  CommandBench bench;
  bench.script("sleep 1000 & sleep 1000");
  auto command = Command::start(bench.options, bench.job, bench.clock);
  REQUIRE(command.has_value());
  CHECK_FALSE(bench.is_free());
  command->reset();
  CHECK(bench.becomes_free());
}

TEST_CASE("at its end what is left of its process group is killed") {
  CommandBench bench;
  const CommandEnd end = bench.run("sleep 1000 & sleep 1000 & echo done");
  CHECK(end.outcome == EndsAs::done);
  CHECK(end.output == "done\n");
  CHECK(bench.becomes_free());
}

TEST_CASE("a descendant that keeps the pipes open is not waited for but holds the lock until it ends") {
  CommandBench bench;
  const CommandEnd end = bench.run(std::string(escape) + "echo done; echo note >&2");
  CHECK(end.outcome == EndsAs::done);
  CHECK(end.errors == "note\n");
  const Lines lines = lines_of(end.output);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] == "done");
  CHECK_FALSE(bench.is_free());
  CHECK(bench.failure().reason == Reason::locked);
  ::kill(std::stoi(lines[0]), SIGKILL);
  CHECK(bench.becomes_free());
}

TEST_CASE("a descendant that writes for ever after the command's end does not keep it") {
  CommandBench bench;
  bench.script("mkfifo $DIR/fifo; setsid sh -c 'echo $$ > $DIR/fifo; exec yes >&2' & cat $DIR/fifo");
  const CommandEnd end = bench.run();
  CHECK(end.outcome == EndsAs::done);
  ::kill(std::stoi(end.output), SIGKILL);
  CHECK(bench.becomes_free());
}

TEST_CASE("at the deadline the whole process group is killed") {
  CommandBench bench;
  bench.options.deadline = 50ms;
  const CommandEnd end = bench.run("trap '' TERM; echo note >&2; echo output; sleep 1000 & sleep 1000");
  CHECK(end.outcome == EndsAs::try_again);
  CHECK(end.cause == "its deadline of 50 ms passed");
  CHECK(bench.becomes_free());
}

TEST_CASE("a command that leaves its process group meets its deadline too") {
  CommandBench bench;
  bench.options.arguments = {"/usr/bin/perl", "-e", "setpgrp(0, getpgrp(getppid)); sleep 1000"};
  bench.options.deadline = 200ms;
  CHECK(bench.run().cause == "its deadline of 200 ms passed");
}

TEST_CASE("output up to its bound is the result and output over it kills the command") {
  CommandBench bench;
  bench.options.output_bytes_max = 100'000;
  const CommandEnd whole = bench.run("head -c 100000 /dev/zero");
  CHECK(whole.outcome == EndsAs::done);
  CHECK(whole.output == Bytes(100'000, '\0'));
  for (const char *script : {"head -c 100001 /dev/zero", "yes", "yes & sleep 1000", "trap '' PIPE; yes; exit 65; :"}) {
    CAPTURE(script);
    const CommandEnd end = bench.run(script);
    CHECK(end.outcome == EndsAs::try_again);
    CHECK(end.cause == "its output is over 100000 bytes");
    CHECK(end.output.empty());
    CHECK(bench.becomes_free());
  }
}

TEST_CASE("the end of a long stderr is kept") {
  CommandBench bench;
  bench.options.errors_bytes_max = 11;
  const CommandEnd end = bench.run("seq 1 100000 >&2; exit 1");
  CHECK(end.errors == "999\n100000\n");
  CHECK(end.cause == "exit code 1");
}

TEST_CASE("a command that writes to stderr for ever meets its deadline") {
  CommandBench bench;
  bench.options.deadline = 50ms;
  const CommandEnd end = bench.run("yes >&2");
  CHECK(end.cause == "its deadline of 50 ms passed");
  CHECK(end.errors.size() <= bench.options.errors_bytes_max);
}

TEST_CASE("a command that closes its outputs early runs on to its end") {
  CommandBench bench;
  const CommandEnd end = bench.run("echo early; exec >&- 2>&-; test -e /; exit 3");
  CHECK(end.cause == "exit code 3");
  CHECK(bench.run("echo early; exec >&- 2>&-; exit 0").output == "early\n");
}

TEST_CASE("a command that is asked to stop may finish its work") {
  CommandBench bench;
  const CommandEnd end = bench.stop_when_ready("trap 'echo 5; exit 0' TERM; touch $DIR/ready; sleep 1000 & wait");
  CHECK(end.outcome == EndsAs::done);
  CHECK(end.output == "5\n");
}

TEST_CASE("a command that is asked to stop may refuse its job") {
  CommandBench bench;
  const CommandEnd end = bench.stop_when_ready("trap 'exit 65' TERM; touch $DIR/ready; sleep 1000 & wait");
  CHECK(end.outcome == EndsAs::refused);
}

TEST_CASE("a command that is asked to stop and ends otherwise or without a result is tried again") {
  for (const char *script : {"touch $DIR/ready; sleep 1000", "trap 'exit 0' TERM; touch $DIR/ready; sleep 1000 & wait",
                             "trap 'echo 5; exit 75' TERM; touch $DIR/ready; sleep 1000 & wait"}) {
    CAPTURE(script);
    CommandBench bench;
    const CommandEnd end = bench.stop_when_ready(script);
    CHECK(end.outcome == EndsAs::try_again);
    CHECK(end.cause == "it was stopped, as the worker stops");
    CHECK(bench.becomes_free());
  }
}

TEST_CASE("a command that ignores that it is asked to stop is killed after the grace period") {
  CommandBench bench;
  bench.options.grace = 50ms;
  bench.options.deadline = 1h; // longer than this test may take
  const CommandEnd end = bench.stop_when_ready("trap '' TERM; touch $DIR/ready; sleep 1000 & sleep 1000");
  CHECK(end.outcome == EndsAs::try_again);
  CHECK(end.cause == "it was stopped, as the worker stops");
  CHECK(bench.becomes_free());
}

TEST_CASE("heartbeats go on while the command runs") {
  CommandBench bench;
  bench.script("until test -e $DIR/go; do sleep 0.01; done");
  int beats = 0;
  const auto beat = [&] {
    if (++beats == 3) std::ofstream(bench.file("go")) << "";
    return true;
  };
  CHECK(bench.run({.stop = -1, .heartbeat = beat, .heartbeat_interval = 1ms}).outcome == EndsAs::done);
  CHECK(beats >= 3);
}

TEST_CASE("a command whose lease is lost is killed") {
  CommandBench bench;
  bench.script("sleep 1000 & sleep 1000");
  const CommandEnd end = bench.run({.stop = -1, .heartbeat = [] { return false; }, .heartbeat_interval = 1ms});
  CHECK(end.outcome == EndsAs::try_again);
  CHECK(end.cause == "its lease was lost");
  CHECK(bench.becomes_free());
}

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
  auto worker = onced::ChildProcess::start_copy([&bench] {
    const auto command = Command::start(bench.options, bench.job, bench.clock);
    if (command) ::pause();
    return 1;
  });
  REQUIRE(worker.has_value());
  const bool has_started = eventually([&] { return !content_of(bench.file("started")).empty(); });
  worker->kill();
  worker->wait();
  REQUIRE(has_started);
  const pid_t self = std::stoi(content_of(bench.file("self")));
  const pid_t started = std::stoi(content_of(bench.file("started")));
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
