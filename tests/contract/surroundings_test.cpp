// What a process is started with and what the machine refuses: ignored signals, limits, closed streams, the first
// process of a namespace, another user. What this does not show: system calls that a sandbox refuses to a command
// (tests/unit/runner/command_test.cpp).
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "support/file_content.hpp"
#include "support/sanitized.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

using Wrapper = std::vector<std::string>;

// A worker with a handler that is this script.
class Scripted {
public:
  explicit Scripted(const std::string &script) {
    std::ofstream(script_) << "#!/bin/sh\n" << script;
    REQUIRE(::chmod(script_.c_str(), 0755) == 0);
    std::ofstream(config()) << "[handlers.h]\ncommand = [\"" << script_.string()
                            << "\"]\nenvironment = { PATH = \"/usr/bin:/bin\" }\nmax-receive-count = 1\n";
    REQUIRE(::chmod(directory_.path().c_str(), 0755) == 0);
  }
  void start(const Wrapper &wrapper, const Arguments &more = {}) {
    worker.start(Arguments{"--config", config()} + more, wrapper);
  }
  // The result of a job of the handler, or why there is none.
  std::string run(const std::string &id) {
    const Finished sent =
        run_command(worker.send({"--ask-again", "50ms"}), R"({"operation_id":")" + id + R"(","type":"h"})");
    return sent.line()["outcome"] == "stored" ? sent.line()["result"] : sent.line()["outcome"];
  }
  [[nodiscard]] std::filesystem::path folder() const { return directory_.path(); }

private:
  [[nodiscard]] std::string config() const { return directory_.path() / "onced.toml"; }

  ScratchDirectory directory_;
  std::filesystem::path script_ = directory_.path() / "handler.sh";

public:
  WorkerProcess worker{directory_.path() / "data"};
};

bool is_root() {
  return ::geteuid() == 0;
}

// As a user who owns this folder and has no rights of root.
Wrapper as_nobody(const std::filesystem::path &folder) {
  constexpr unsigned nobody = 65534;
  REQUIRE(::chown(folder.c_str(), nobody, nobody) == 0);
  return {"/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};
}

// The children of a process, those included that have ended and nobody has waited for.
std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;)
    children.push_back(child);
  return children;
}

} // namespace

TEST_CASE("a worker that was started with SIGCHLD ignored and SIGTERM blocked runs handlers and drains") {
  Scripted scripted("echo 7\n");
  scripted.start({"/usr/bin/env", "--ignore-signal=CHLD", "--block-signal=TERM"});
  CHECK(scripted.run("a") == "7");
  CHECK(scripted.worker.stop() == 0);
}

TEST_CASE("a handler has the limit of open files that the worker was given") {
  Scripted scripted("ulimit -Sn\n");
  scripted.start({"/usr/bin/prlimit", "--nofile=300:4000"});
  CHECK(scripted.run("a") == "300");
}

TEST_CASE("a limit of the size of files is a full disk to a worker") {
  WorkerProcess worker;
  worker.start({}, {"/usr/bin/prlimit", "--fsize=200000"});
  const Finished sent = run_command(worker.send({"--deadline", "4s"}), jobs_as_json("job", 20'000));
  CHECK(sent.exit == 75);
  CHECK(worker.process().is_running());
  CHECK(worker.process().errors().find("File too large") != std::string::npos);
  CHECK(worker.stop() == 0);
  worker.start();
  const auto stored = tally(sent.lines(), "outcome")["stored"];
  CHECK(worker.rows().results >= stored);
  CHECK(run_command(worker.send(), jobs_as_json("job", 20'000)).exit == 0);
  CHECK(worker.rows() == Rows{20'000, 0});
}

TEST_CASE("a limit of the size of files is a full disk to a sender with an outbox") {
  const ScratchDirectory directory;
  const WorkerProcess worker; // which does not run
  const Finished sent = run_command(
      Process::Options{.arguments = worker.send({"-", "--outbox", directory.path() / "outbox", "--deadline", "10s"}),
                       .input = jobs_as_json("job", 20'000),
                       .wrapper = {"/usr/bin/prlimit", "--fsize=200000"}});
  CHECK(sent.exit == 74);
  CHECK(sent.errors.find("File too large") != std::string::npos);
}

TEST_CASE("a worker and a sender start with all three standard streams closed") {
  const ScratchDirectory directory;
  WorkerProcess worker;
  const Wrapper closed{"/bin/sh", "-c", "exec \"$@\" 0<&- 1>&- 2>&-", "sh"};
  Process process({.arguments = worker.serve(), .wrapper = closed});
  CHECK(process.wait() == 74); // its ready line cannot be written
  const Finished sent = run_command(Process::Options{
      .arguments = worker.send({"--outbox", directory.path() / "outbox", "--deadline", "60s"}), .wrapper = closed});
  CHECK(sent.exit == 0);
  worker.start(); // nothing but the database is in its files
  CHECK(worker.rows() == Rows{0, 0});
  CHECK(run_command({"verify", "--data", worker.data().string()}).exit == 0);
}

TEST_CASE("a handler cannot read the worker's environment unless core dumps are allowed") {
  if (!is_root()) return;
  for (const bool allowed : {false, true}) {
    CAPTURE(allowed);
    Scripted scripted("if cat /proc/$PPID/environ > /dev/null 2>&1; then echo 1; else echo 0; fi\n");
    scripted.start(as_nobody(scripted.folder()), allowed ? Arguments{"--allow-core"} : Arguments{});
    CHECK(scripted.run("a") == (allowed ? "1" : "0"));
    CHECK(scripted.worker.rows() == Rows{1, 0}); // through its control socket, as root
    const Finished asked = run_command(Process::Options{
        .arguments = {"count", "--data", scripted.worker.data().string()}, .wrapper = as_nobody(scripted.folder())});
    CHECK(asked.line()["results"] == "1");
    CHECK(scripted.worker.stop() == 0);
  }
}

TEST_CASE("a worker that is the first process of a namespace leaves no zombies and is ended by signals") {
  if (!is_root()) return;
  Scripted scripted("setsid -f sh -c 'sleep 0.01 & exec sleep 0.02' < /dev/null > /dev/null 2>&1\necho 7\n");
  for (const int signal : {SIGTERM, SIGQUIT, SIGKILL}) {
    CAPTURE(signal);
    scripted.start({"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--"});
    const pid_t first = children_of(scripted.worker.process().id()).at(0);
    const pid_t command = children_of(first).at(0);
    for (int job = 0; job < 5; ++job)
      CHECK(scripted.run("j-" + std::to_string(signal) + "-" + std::to_string(job)) == "7");
    CHECK(eventually([&] { return children_of(first) == std::vector<pid_t>{command}; }));
    ::kill(signal == SIGKILL ? command : first, signal);
    CHECK(scripted.worker.process().wait() == (signal == SIGTERM ? 0 : 128 + signal));
  }
}

TEST_CASE("more memory or threads or files than there may be is exit code 71 before anything is made") {
  if (sanitized) return; // which takes memory of its own
  struct Lack {
    Wrapper wrapper;
    Arguments more;
    std::string named;
  };
  std::vector<Lack> lacks{{{"/usr/bin/env"}, {"--memory", "1TiB"}, "memory: "},
                          {{"/usr/bin/prlimit", "--as=400000000"}, {}, "memory: "},
                          {{"/usr/bin/prlimit", "--as=150000000"}, {"--memory", "100MiB", "--senders", "1"}, ""},
                          {{"/usr/bin/prlimit", "--nofile=200:200"}, {}, "open files: "}};
  for (const Lack &lack : lacks) {
    CAPTURE(lack.wrapper.back());
    const WorkerProcess worker;
    const Finished refused =
        run_command(Process::Options{.arguments = worker.serve(lack.more), .wrapper = lack.wrapper});
    CHECK(refused.exit == 71);
    CHECK(refused.errors.find(lack.named) != std::string::npos);
    CHECK(refused.errors.find("defect") == std::string::npos);
    CHECK_FALSE(std::filesystem::exists(worker.data()));
  }
}

TEST_CASE("a sender that may have too few threads or files or too little memory is exit code 71") {
  if (sanitized) return;
  const WorkerProcess worker;
  const ScratchDirectory directory;
  const Arguments outbox{"-", "--outbox", directory.path() / "outbox", "--deadline", "100ms"};
  for (const Wrapper &wrapper :
       {Wrapper{"/usr/bin/prlimit", "--nofile=64:64"}, Wrapper{"/usr/bin/prlimit", "--as=200000000"}}) {
    CAPTURE(wrapper.back());
    CHECK(run_command(Process::Options{.arguments = worker.send(outbox), .wrapper = wrapper}).exit == 71);
    CHECK_FALSE(std::filesystem::exists(directory.path() / "outbox"));
  }
}

TEST_CASE("a worker and a sender that may have too few threads are exit code 71") {
  if (!is_root() || sanitized) return;
  const ScratchDirectory directory;
  const Wrapper few = as_nobody(directory.path()) + Wrapper{"/usr/bin/prlimit", "--nproc=1"};
  const WorkerProcess worker(directory.path() / "data");
  const Finished refused = run_command(Process::Options{.arguments = worker.serve(), .wrapper = few});
  CHECK(refused.exit == 71);
  CHECK(refused.errors.find("threads: ") != std::string::npos);
  CHECK(run_command(Process::Options{.arguments = worker.send({"--deadline", "100ms"}), .wrapper = few}).exit == 71);
}

TEST_CASE("a worker without a proc file system is exit code 71 and says so") {
  if (!is_root() || sanitized) return; // a sanitizer reads /proc itself
  const WorkerProcess worker;
  const Finished refused = run_command(Process::Options{
      .arguments = worker.serve(),
      .wrapper = {"/usr/bin/unshare", "--mount", "/bin/sh", "-c", "umount -l /proc && exec \"$@\"", "sh"}});
  CHECK(refused.exit == 71);
  CHECK(refused.errors.find("/proc") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(worker.data()));
}
