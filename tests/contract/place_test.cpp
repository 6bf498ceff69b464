// Where a worker's files are, and who else may come near them: a directory that is deleted or replaced while it runs,
// links and rights, an endpoint that somebody else has, a directory of another kind.
#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <functional>

#include <sys/stat.h>
#include <unistd.h>

#include "support/file_content.hpp"
#include "support/job_bytes.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;
namespace fs = std::filesystem;

namespace {

mode_t mode_of(const fs::path &path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

bool says(const Finished &finished, const std::string &text) {
  return finished.errors.find(text) != std::string::npos;
}

Finished send_briefly(const WorkerProcess &worker, const std::string &prefix) {
  return run_command(worker.send({"--deadline", "2s"}), jobs_as_json(prefix, 3));
}

void check_nothing_acknowledged(const Finished &sent) {
  CHECK(sent.exit == 75);
  CHECK(tally(sent.lines(), "outcome").count("stored") == 0);
  CHECK(tally(sent.lines(), "outcome").count("duplicate") == 0);
}

// A user who has nothing to do with the worker. Takes root, which the tests then run as.
constexpr unsigned nobody = 65534;
bool may_change_user() {
  if (::geteuid() == 0 && ::access("/usr/bin/setpriv", X_OK) == 0) return true;
  MESSAGE("skipped: to be another user takes root and setpriv");
  return false;
}
std::vector<std::string> as_user(unsigned user, unsigned group) {
  return {"/usr/bin/setpriv", "--reuid=" + std::to_string(user), "--regid=" + std::to_string(group), "--clear-groups"};
}
Finished run_as(unsigned user, unsigned group, const Arguments &arguments) {
  return run_command(Process::Options{.arguments = arguments, .wrapper = as_user(user, group)});
}

// Others may pass through a test's directory, though not list it.
struct PassableDirectory : ScratchDirectory {
  PassableDirectory() { REQUIRE(::chmod(path().c_str(), 0711) == 0); }
};

} // namespace

// --- A directory that goes away
// ---------------------------------------------------------------------------------------

TEST_CASE("a worker whose directory was deleted acknowledges nothing and makes no other") {
  WorkerProcess worker;
  worker.start();
  CHECK(send_briefly(worker, "before").exit == 0);
  fs::remove_all(worker.data());
  check_nothing_acknowledged(send_briefly(worker, "after"));
  check_nothing_acknowledged(send_briefly(worker, "before")); // whose results are still in its memory
  CHECK_FALSE(fs::exists(worker.data()));
  CHECK(worker.stop() == 0);
}

TEST_CASE("of two workers at the same path the one whose directory was replaced acknowledges nothing") {
  WorkerProcess first;
  first.start();
  CHECK(send_briefly(first, "job").exit == 0);
  fs::remove_all(first.data());
  WorkerProcess second(first.data());
  second.start();
  CHECK(send_briefly(second, "job").exit == 0);
  check_nothing_acknowledged(send_briefly(first, "job"));
  check_nothing_acknowledged(send_briefly(first, "other"));
  CHECK(second.rows() == Rows{3, 0});
  CHECK(first.stop() == 0);
}

TEST_CASE("a worker goes on when its directory is put back") {
  WorkerProcess worker;
  worker.start();
  CHECK(send_briefly(worker, "before").exit == 0);
  const fs::path moved = worker.data().string() + ".moved";
  fs::rename(worker.data(), moved);
  check_nothing_acknowledged(send_briefly(worker, "after"));
  fs::rename(moved, worker.data());
  CHECK(run_command(worker.send(), jobs_as_json("after", 3)).exit == 0);
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{6, 0});
}

TEST_CASE("a worker whose database alone was deleted acknowledges nothing and ends") {
  WorkerProcess worker;
  worker.start();
  CHECK(send_briefly(worker, "before").exit == 0);
  fs::remove_all(worker.data() / "db");
  check_nothing_acknowledged(send_briefly(worker, "after"));
  CHECK(worker.process().wait() == 65);
  CHECK_FALSE(fs::exists(worker.data() / "db"));
}

// --- Links and rights
// -------------------------------------------------------------------------------------------------

TEST_CASE("a link in the data directory or outbox is refused and what it points to stays as it is") {
  for (const char *name : {"rocksdb.log", "durable.mark", "onced.lock", "control.sock", "running.slots", "db/LOCK"}) {
    CAPTURE(name);
    const ScratchDirectory directory;
    const fs::path precious = directory.path() / "precious";
    std::ofstream(precious) << "precious";
    const fs::path link = directory.path() / "data" / name;
    fs::create_directories(link.parent_path());
    fs::create_symlink(precious, link);
    const std::string data = (directory.path() / "data").string();
    for (const Finished &refused : {run_command({"serve", "--data", data}), run_command({"send", "--outbox", data}),
                                    run_command({"count", "--data", data})}) {
      CHECK(refused.exit == 64);
      CHECK(says(refused, link.string() + ": is a symbolic link"));
    }
    CHECK(content_of(precious) == "precious");
  }
}

TEST_CASE("the data directory itself may be a link") {
  const ScratchDirectory directory;
  fs::create_directory(directory.path() / "real");
  fs::create_directory_symlink("real", directory.path() / "link");
  WorkerProcess worker(directory.path() / "link");
  worker.start();
  CHECK(send_briefly(worker, "job").exit == 0);
  CHECK(worker.rows() == Rows{3, 0});
  CHECK(worker.stop() == 0);
  CHECK(count_rows(directory.path() / "real") == Rows{3, 0});
}

TEST_CASE("whatever the umask is nobody else may use what a worker and a sender make") {
  const ScratchDirectory directory;
  WorkerProcess worker(directory.path() / "data");
  const std::vector<std::string> open_to_all{"/bin/sh", "-c", "umask 0; exec \"$0\" \"$@\""};
  worker.start({"--events", (directory.path() / "events").string()}, open_to_all);
  const auto outbox = (directory.path() / "outbox").string();
  std::ofstream(directory.path() / "jobs") << jobs_as_json("job", 3);
  const Arguments send = worker.send({"--outbox", outbox, (directory.path() / "jobs").string()});
  CHECK(run_command(Process::Options{.arguments = send, .wrapper = open_to_all}).exit == 0);
  fs::remove(directory.path() / "jobs");
  std::size_t looked_at = 0;
  for (const auto &entry : fs::recursive_directory_iterator(directory.path())) {
    CAPTURE(entry.path().string());
    CHECK((mode_of(entry.path()) & 077U) == 0);
    ++looked_at;
  }
  CHECK(looked_at > 10);
  CHECK(worker.stop() == 0);
}

TEST_CASE("a directory that others may write is refused and one that they may read is said") {
  const ScratchDirectory directory;
  const fs::path data = directory.path() / "data";
  fs::create_directory(data);
  REQUIRE(::chmod(data.c_str(), 0777) == 0);
  const Finished refused = run_command({"serve", "--data", data.string()});
  CHECK(refused.exit == 64);
  CHECK(says(refused, "chmod go-w " + data.string()));
  CHECK(says(refused, (data / "onced").string()));
  CHECK(fs::is_empty(data));

  WorkerProcess below(data / "onced"); // as on a volume
  below.start();
  CHECK(mode_of(data / "onced") == 0700);
  CHECK(below.stop() == 0);

  REQUIRE(::chmod(data.c_str(), 0755) == 0);
  WorkerProcess readable(data);
  readable.start();
  CHECK(readable.process().errors().find("directory.exposed") != std::string::npos);
  CHECK(readable.process().errors().find("chmod 700 " + data.string()) != std::string::npos);
  CHECK(readable.stop() == 0);
}

TEST_CASE("another user can neither use a worker's directory nor plant a file there") {
  if (!may_change_user()) return;
  const PassableDirectory directory;
  WorkerProcess worker(directory.path() / "data");
  worker.start();
  const std::string data = worker.data().string();
  CHECK(run_as(nobody, nobody, {"count", "--data", data, "--deadline", "2s"}).exit == 74);
  CHECK(run_as(nobody, nobody, {"serve", "--data", data}).exit == 64);
  CHECK(worker.stop() == 0);
  const Finished refused = run_as(nobody, nobody, {"serve", "--data", data});
  CHECK(refused.exit == 64);
  CHECK(says(refused, "belongs to user 0, and this is user 65534"));
}

TEST_CASE("a worker that is not root works in a directory of its own and below a volume of somebody else") {
  if (!may_change_user()) return;
  const PassableDirectory directory;
  const fs::path volume = directory.path() / "volume";
  fs::create_directory(volume);
  REQUIRE(::chmod(volume.c_str(), 0777) == 0);
  const Finished refused = run_as(nobody, nobody, {"serve", "--data", volume.string()});
  CHECK(refused.exit == 64);
  CHECK(says(refused, (volume / "onced").string()));
  WorkerProcess worker(volume / "onced");
  worker.start({}, as_user(nobody, nobody));
  CHECK(send_briefly(worker, "job").exit == 0);
  CHECK(run_as(nobody, nobody, {"count", "--data", worker.data().string()}).exit == 0);
  CHECK(worker.stop() == 0);
  // Root's files in it would shut its own user out.
  const Finished as_root = run_command({"serve", "--data", worker.data().string()});
  CHECK(as_root.exit == 64);
  CHECK(says(as_root, "belongs to user 65534, and this is user 0"));
  CHECK(run_command({"count", "--data", worker.data().string()}).exit == 0); // which writes nothing
}

TEST_CASE("members of the operator group may use the control socket and nothing else") {
  if (!may_change_user()) return;
  constexpr unsigned operators = 54321;
  const PassableDirectory directory;
  WorkerProcess worker(directory.path() / "data");
  worker.start({"--operator-group", std::to_string(operators)});
  const std::string data = worker.data().string();
  CHECK(run_command(worker.send(), "{\"operation_id\":\"bad\",\"type\":\"none\"}\n").exit == 1);
  const Arguments purge{"dead-letters", "purge", "--reason", "invalid", "--by",
                        "kim",          "--why", "INC-7",    "--data",  data};

  for (const Arguments &arguments : {Arguments{"count", "--data", data, "--deadline", "2s"}, purge}) {
    const Finished stranger = run_as(nobody, nobody, arguments);
    CHECK(stranger.exit == 74);
    CHECK(says(stranger, "may not operate its worker"));
  }
  CHECK(run_as(nobody, operators, {"count", "--data", data}).line()["dead_letters"] == "1");
  CHECK(run_as(nobody, operators, purge).exit == 0);
  CHECK(worker.rows() == Rows{0, 0}); // the owner asks there too
  CHECK(mode_of(worker.data()) == 0710);
  CHECK(mode_of(worker.data() / "operators") == 0750);
  CHECK(mode_of(worker.data() / "operators" / "control.sock") == 0660);
  for (const auto &entry : fs::directory_iterator(worker.data())) {
    CAPTURE(entry.path().string());
    if (entry.path().filename() != "operators") CHECK((mode_of(entry.path()) & 077U) == 0);
  }
  CHECK(worker.stop() == 0);

  worker.start(); // without the group
  CHECK_FALSE(fs::exists(worker.data() / "operators"));
  CHECK(run_as(nobody, operators, {"count", "--data", data, "--deadline", "2s"}).exit == 74);
  CHECK(worker.rows() == Rows{0, 0});
  CHECK(worker.stop() == 0);
}

TEST_CASE("an operator group that there is not is refused") {
  const ScratchDirectory directory;
  const Finished refused =
      run_command({"serve", "--data", (directory.path() / "data").string(), "--operator-group", "no-such-group"});
  CHECK(refused.exit == 64);
  CHECK(says(refused, "no-such-group"));
}

// --- Endpoints
// --------------------------------------------------------------------------------------------------------

namespace {

Arguments serve_at(const fs::path &data, const std::string &jobs, const std::string &replies) {
  return {"serve", "--data", data.string(), "--jobs", jobs, "--replies", replies};
}

} // namespace

TEST_CASE("a second worker on an ipc endpoint is refused and the first goes on") {
  const ScratchDirectory directory;
  const std::string jobs = "ipc://" + (directory.path() / "jobs.sock").string();
  const std::string replies = "ipc://" + (directory.path() / "replies.sock").string();
  const auto start_first = [&] {
    auto process =
        std::make_unique<Process>(Process::Options{.arguments = serve_at(directory.path() / "first", jobs, replies)});
    REQUIRE(process->next_line().has_value());
    return process;
  };
  auto first = start_first();
  const std::string free = "tcp://127.0.0.1:*";
  for (const Arguments &serve :
       {serve_at(directory.path() / "second", jobs, free), serve_at(directory.path() / "second", free, replies),
        serve_at(directory.path() / "second", free, jobs)}) {
    const Finished refused = run_command(serve);
    CHECK(refused.exit == 69);
    CHECK(says(refused, "another process listens there"));
  }
  const Arguments send{"send", "--jobs", jobs, "--replies", replies};
  CHECK(run_command(send, jobs_as_json("job", 3)).exit == 0);
  first->kill_now();
  first = start_first(); // what a killed process leaves is in nobody's way
  CHECK(run_command(send, jobs_as_json("job", 3)).exit == 0);
  first->signal(SIGTERM);
  CHECK(first->wait() == 0);
}

TEST_CASE("a file at the path of an ipc endpoint is refused and stays") {
  const ScratchDirectory directory;
  const fs::path file = directory.path() / "precious";
  std::ofstream(file) << "precious";
  const std::string free = "tcp://127.0.0.1:*";
  for (const Arguments &serve : {serve_at(directory.path() / "data", "ipc://" + file.string(), free),
                                 serve_at(directory.path() / "data", free, "ipc://" + file.string())}) {
    const Finished refused = run_command(serve);
    CHECK(refused.exit == 69);
    CHECK(says(refused, "is no socket"));
    CHECK(content_of(file) == "precious");
  }
}

TEST_CASE("one endpoint for jobs and replies is wrong usage") {
  const ScratchDirectory directory;
  for (const std::string &endpoint :
       {"ipc://" + (directory.path() / "both.sock").string(), std::string("tcp://127.0.0.1:5999")}) {
    const Finished refused = run_command(serve_at(directory.path() / "data", endpoint, endpoint));
    CHECK(refused.exit == 64);
    CHECK_FALSE(fs::exists(directory.path() / "data"));
  }
}

// --- Kinds of directories
// ---------------------------------------------------------------------------------------------

TEST_CASE("each kind of directory says what it is where it is used as another") {
  WorkerProcess worker;
  worker.start();
  CHECK(worker.stop() == 0);
  const ScratchDirectory directory;
  const std::string outbox = (directory.path() / "outbox").string();
  CHECK(run_command(worker.send({"--outbox", outbox, "--deadline", "2s", "-"}), jobs_as_json("job", 3)).exit == 75);
  const std::string record = (directory.path() / "record").string();
  fs::create_directory(record);
  std::ofstream(fs::path(record) / "record.json") << "{}";
  const std::string other = (directory.path() / "other").string();
  fs::create_directory(other);
  std::ofstream(fs::path(other) / "file") << "x";
  const std::string data = worker.data().string();

  struct Use {
    Arguments command;
    int exit;
    std::string cause;
  };
  const std::string an_outbox = "is the outbox of a sender";
  const std::string a_record = "is the record of a rehearsal";
  const std::string a_worker = "is the data directory of a worker";
  const std::vector<Use> uses{
      {{"count", "--data", outbox}, 64, an_outbox},
      {{"get", "job-1", "--data", outbox}, 64, an_outbox},
      {{"verify", "--data", outbox}, 64, an_outbox},
      {{"dead-letters", "purge", "--reason", "failed", "--by", "kim", "--why", "x", "--data", outbox}, 64, an_outbox},
      {{"serve", "--data", outbox}, 64, an_outbox},
      {{"serve", "--data", outbox, "--accept-loss"}, 64, an_outbox},
      {{"rehearse", "--verify", outbox}, 64, an_outbox},
      {{"count", "--data", record}, 64, a_record},
      {{"serve", "--data", record}, 64, a_record},
      {{"serve", "--data", record, "--accept-loss"}, 64, a_record},
      {{"send", "--outbox", record}, 64, a_record},
      {{"send", "--outbox", data}, 64, a_worker},
      {{"rehearse", "--verify", data}, 64, a_worker},
      {{"count", "--data", other}, 66, "no worker and no sender has used this directory"},
  };
  for (const Use &use : uses) {
    CAPTURE(use.command);
    const Finished refused = run_command(use.command);
    CHECK(refused.exit == use.exit);
    CHECK(says(refused, use.cause));
    CHECK_FALSE(says(refused, "--accept-loss"));
  }
  CHECK_FALSE(fs::exists(fs::path(record) / "onced.lock"));
  CHECK_FALSE(fs::exists(fs::path(outbox) / "durable.mark"));
  worker.start();
  const Finished rest = run_command(worker.send({"--outbox", outbox})); // its jobs are still there
  CHECK(rest.exit == 0);
  CHECK(rest.lines().size() == 3);
  CHECK(worker.stop() == 0);
}
