// `onced send --outbox` as a process of its own, with workers and senders killed in between: what was taken is stored
// once, whoever dies. What kill -9 cannot show is a missing fdatasync: tests/unit/sender counts those.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <set>

#include <fcntl.h>
#include <unistd.h>

#include "onced/kill_point.hpp"
#include "sender/outbox.hpp"
#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A worker that may or may not run, an outbox, and a file of jobs that one read takes whole, so that they are kept
// together.
struct Scene {
  static constexpr std::size_t jobs = 200;

  WorkerProcess worker;
  ScratchDirectory temp;
  std::filesystem::path outbox = temp.path() / "outbox";
  std::string file = (temp.path() / "jobs.jsonl").string();

  Scene() { std::ofstream(file) << jobs_as_json("job", jobs); }

  [[nodiscard]] Arguments send(const Arguments &more = {}) const {
    return worker.send(Arguments{"--outbox", outbox.string()} + more);
  }
  [[nodiscard]] std::uint64_t jobs_kept() const {
    const auto opened = sender::Outbox::open(outbox, SenderId{});
    if (!opened) throw std::runtime_error(describe(opened.error()));
    return (*opened)->found().jobs;
  }
};

// A terminal at which nobody types.
class Terminal {
public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    std::array<char, 64> name{};
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0 ||
        ::ptsname_r(master_, name.data(), name.size()) != 0) {
      throw std::runtime_error("no terminal");
    }
    name_ = name.data();
  }
  ~Terminal() { ::close(master_); }
  Terminal(const Terminal &) = delete;
  Terminal &operator=(const Terminal &) = delete;

  [[nodiscard]] const std::string &name() const { return name_; }

private:
  int master_;
  std::string name_;
};

// The ids that were printed as stored or duplicate with their own result; `wrong` counts the other lines.
struct Told {
  std::map<std::string, std::size_t> times;
  std::size_t wrong = 0;

  void add(const Finished &sent) {
    for (const Line &line : sent.lines()) {
      const std::string id = line["operation_id"];
      ++times[id];
      const auto number = std::stoull(id.substr(id.rfind('-') + 1));
      const bool success = line["outcome"] == "stored" || line["outcome"] == "duplicate";
      if (!success || line["result"] != std::to_string(number + 1)) ++wrong;
    }
  }
};

// A sender killed there, and then one that goes on with what is left: every job is stored once, and told at least once
// by one of the two.
void check_kill_point(const std::string &point, const std::string &arrival, bool kept) {
  CAPTURE(point);
  CAPTURE(arrival);
  Scene scene;
  scene.worker.start();
  const Arguments window{"--window", "8"};
  const Finished killed = run_command(scene.send(window + Arguments{scene.file, "--kill-at", point + arrival}));
  CHECK(killed.exit.signal == SIGKILL);
  const Finished resumed = run_command(scene.send(window));
  CHECK(resumed.exit == 0);
  Told told;
  told.add(killed);
  told.add(resumed);
  CHECK(told.wrong == 0);
  CHECK(told.times.size() == (kept ? Scene::jobs : 0));
  CHECK(scene.worker.rows() == Rows{kept ? Scene::jobs : 0, 0});
  CHECK(scene.jobs_kept() == 0);
}

} // namespace

TEST_CASE("a sender killed before its outbox write has taken nothing") {
  check_kill_point("sender.before-outbox", ":1", false);
}
TEST_CASE("a sender killed after its outbox write loses none of the jobs that it took") {
  check_kill_point("sender.after-outbox", ":1", true);
  check_kill_point("sender.after-outbox", ":200", true);
}
TEST_CASE("a sender killed after sending loses none of the jobs that it took") {
  check_kill_point("sender.after-send", ":1", true);
  check_kill_point("sender.after-send", ":7", true);
}
TEST_CASE("a sender killed after a reply loses none of the jobs that it took") {
  check_kill_point("sender.after-reply", ":1", true);
  check_kill_point("sender.after-reply", ":7", true);
}
TEST_CASE("a sender killed before a removal has told every outcome that leaves the outbox") {
  check_kill_point("sender.before-removal", ":1", true);
  check_kill_point("sender.before-removal", ":50", true);
}
TEST_CASE("a sender killed after a removal has told every outcome that has left the outbox") {
  check_kill_point("sender.after-removal", ":1", true);
  check_kill_point("sender.after-removal", ":50", true);
}

TEST_CASE("every kill point of the sender is met by the tests above") {
  std::set<std::string> names;
  for (const std::string_view name : kill_point_names) {
    if (name.starts_with("sender.")) names.emplace(name);
  }
  CHECK(names == std::set<std::string>{"sender.before-outbox", "sender.after-outbox", "sender.after-send",
                                       "sender.after-reply", "sender.before-removal", "sender.after-removal"});
}

TEST_CASE("jobs that no worker takes stay in the outbox and a later send without input finishes them") {
  Scene scene;
  const Finished sent = run_command(scene.send({scene.file, "--deadline", "1s"}));
  CHECK(sent.exit == 75);
  CHECK(sent.output.empty());
  CHECK(sent.errors.find("200 jobs are kept in " + scene.outbox.string() + ": ") != std::string::npos);
  CHECK(sent.errors.find("nobody listens there") != std::string::npos);
  CHECK(sent.errors.find("; run onced send --resume --outbox " + scene.outbox.string() + " to go on") !=
        std::string::npos);
  CHECK(scene.jobs_kept() == 200);
  scene.worker.start();
  Told told;
  const Finished resumed =
      run_command(scene.send({"--resume"}), "{\"operation_id\":\"stdin is not read\",\"numbers\":[1]}\n");
  CHECK(resumed.exit == 0);
  told.add(resumed);
  CHECK(told.wrong == 0);
  CHECK(told.times.size() == 200);
  CHECK(scene.worker.rows() == Rows{200, 0});
  CHECK(run_command(scene.send()).output.empty()); // nothing is left
}

TEST_CASE("with an outbox and no FILE the jobs on standard input are sent, from a file, a pipe, or as raw bytes") {
  Scene scene;
  scene.worker.start();
  const auto stored = [](const Finished &sent) { return field_of(sent.lines(), "outcome"); };
  CHECK(stored(run_command(scene.send(), jobs_as_json("file", 1))) == "stored");
  Process piped({.arguments = scene.send(), .input = std::nullopt});
  piped.write_input(jobs_as_json("pipe", 1));
  piped.end_input();
  const Finished sent = finish(piped);
  CHECK(sent.exit == 0);
  CHECK(stored(sent) == "stored");
  CHECK(stored(run_command(scene.send({"--raw"}), job_bytes("raw", {1}))) == "stored");
  CHECK(scene.worker.rows() == Rows{3, 0});
}

TEST_CASE("jobs on standard input are kept in an outbox that no worker empties") {
  Scene scene;
  const Finished killed = run_command(scene.send({"--kill-at", "sender.after-outbox:1"}), jobs_as_json("job", 3));
  CHECK(killed.exit.signal == SIGKILL);
  CHECK(scene.jobs_kept() == 3);
}

TEST_CASE("an outbox goes on where standard input is empty, closed or a terminal, and where that is asked for") {
  const Terminal terminal;
  const auto by_shell = [](const std::string &redirection) {
    return std::vector<std::string>{"/bin/sh", "-c", "exec \"$@\" " + redirection, "sh"};
  };
  for (const auto &wrapper :
       {std::vector<std::string>{}, by_shell("</dev/null"), by_shell("<&-"), by_shell("<" + terminal.name())}) {
    Scene scene;
    scene.worker.start();
    CHECK(run_command(scene.send({scene.file, "--kill-at", "sender.after-outbox:1"})).exit.signal == SIGKILL);
    const Finished resumed = run_command(Process::Options{.arguments = scene.send(), .wrapper = wrapper});
    CHECK(resumed.exit == 0);
    CHECK(resumed.lines().size() == Scene::jobs);
    CHECK(scene.worker.rows() == Rows{Scene::jobs, 0});
    CHECK(run_command(scene.send({"--raw"})).output.empty()); // no bytes are no job here
    CHECK(scene.worker.rows() == Rows{Scene::jobs, 0});
  }
}

TEST_CASE("a standard input that does not end is waited for until the deadline, and that is said") {
  Scene scene;
  scene.worker.start();
  Process open_pipe({.arguments = scene.send({"--deadline", "300ms"}), .input = std::nullopt});
  const Finished sent = finish(open_pipe);
  CHECK(sent.exit == 75);
  CHECK(sent.errors.find("--resume") != std::string::npos);
  CHECK(sent.errors.find("not read to its end") != std::string::npos);
}

TEST_CASE("resuming takes an outbox and no jobs") {
  Scene scene;
  CHECK(run_command(scene.worker.send({"--resume"})).exit == 64);
  CHECK(run_command(scene.send({"--resume", scene.file})).exit == 64);
  CHECK(run_command(scene.send({"--resume", "--raw"})).exit == 64);
  CHECK_FALSE(std::filesystem::exists(scene.outbox));
}

TEST_CASE("with a dash the jobs of standard input join those that are left") {
  Scene scene;
  CHECK(run_command(scene.send({scene.file, "--deadline", "500ms"})).exit == 75);
  scene.worker.start();
  const Finished sent = run_command(scene.send({"-", "--copies", "3"}), jobs_as_json("more", 5));
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == 215);
  CHECK(scene.worker.rows() == Rows{205, 0});
}

TEST_CASE("all jobs of a full outbox are redelivered after the worker was killed with a full queue") {
  constexpr std::size_t jobs = 20'000;
  Scene scene;
  scene.worker.start({"--kill-at", "worker.before-commit:3"});
  Process sender({.arguments = scene.send({"-", "--stats"}), .input = jobs_as_json("job", jobs)});
  CHECK(scene.worker.process().wait().signal == SIGKILL);
  scene.worker.start();
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  auto lines = sent.lines();
  REQUIRE(lines.size() == jobs + 1);
  const Line stats = lines.back();
  CHECK(stats["event"] == "stats");
  CHECK(stats["submitted"] == std::to_string(jobs));
  CHECK(stats["unsettled"] == "0");
  CHECK(stats["new_boots"] == "1");
  CHECK(stats["recovery_ms"] != "null");
  CHECK(std::stoull(stats["stored"]) + std::stoull(stats["duplicate"]) == jobs);
  CHECK(std::stoull(stats["resends"]) > 0);
  lines.pop_back();
  CHECK(tally(lines, "operation_id").size() == jobs);
  CHECK(scene.worker.rows() == Rows{jobs, 0});
}

TEST_CASE("the second process on an outbox is refused with exit code 73 and the first goes on") {
  Scene scene;
  Process first({.arguments = scene.send({"-"}), .input = std::nullopt});
  first.write_input(jobs_as_json("job", 1));
  CHECK(eventually([&] { return std::filesystem::exists(scene.outbox / "db" / "CURRENT"); }));
  const Finished second = run_command(scene.send({scene.file}));
  CHECK(second.exit == 73);
  CHECK(second.errors.find("the directory is held by process " + std::to_string(first.id())) != std::string::npos);
  scene.worker.start();
  first.end_input();
  CHECK(finish(first).exit == 0);
  CHECK(scene.worker.rows() == Rows{1, 0});
}

TEST_CASE("two copies of one outbox both finish and each job has one effect") {
  Scene scene;
  CHECK(run_command(scene.send({scene.file, "--deadline", "500ms"})).exit == 75);
  const auto copy = scene.temp.path() / "copy";
  std::filesystem::copy(scene.outbox, copy, std::filesystem::copy_options::recursive);
  scene.worker.start();
  // Each also has jobs of its own, under the same sender id and the same sequences as the other's.
  Process first({.arguments = scene.send({"-"}), .input = jobs_as_json("first", 300)});
  Process second(
      {.arguments = scene.worker.send({"--outbox", copy.string(), "-"}), .input = jobs_as_json("second", 300)});
  const Finished one = finish(first);
  const Finished two = finish(second);
  CHECK(one.exit == 0);
  CHECK(two.exit == 0);
  for (const auto &[sent, own] : {std::pair{&one, std::string("first")}, std::pair{&two, std::string("second")}}) {
    Told told;
    told.add(*sent);
    CHECK(told.wrong == 0);
    CHECK(told.times.size() == 500);
    CHECK(told.times.contains(own + "-300"));
  }
  CHECK(scene.worker.rows() == Rows{800, 0});
}

TEST_CASE("copies and shuffles and losses by seed settle every delivery and are told in the figures") {
  Scene scene;
  scene.worker.start();
  const Finished sent =
      run_command(scene.send({scene.file, "--copies", "10", "--shuffle", "--loss", "0.3", "--seed", "42", "--window",
                              "500", "--acknowledgement-timeout", "100ms", "--acknowledgement-timeout-max", "400ms"}));
  CHECK(sent.exit == 0);
  auto lines = sent.lines();
  REQUIRE(lines.size() == 2001);
  const Line stats = lines.back();
  CHECK(stats["seed"] == "42");
  CHECK(stats["loss"] == "0.3");
  CHECK(stats["shuffle"] == "true");
  CHECK(stats["copies"] == "10");
  // Of a delivery that was sent again too early both answers may be on their way, and the second be heard first.
  CHECK(std::stoull(stats["stored"]) + std::stoull(stats["duplicate"]) == 2000);
  CHECK(std::stoull(stats["stored"]) <= 200);
  CHECK(std::stoull(stats["lost"]) > 0);
  CHECK(std::stoull(stats["attempts_max"]) > 1);
  CHECK(scene.worker.rows() == Rows{200, 0});
}

TEST_CASE("a message without replies is not kept") {
  Scene scene;
  CHECK(run_command(scene.send({scene.file, "--raw-message"})).exit == 64);
}

TEST_CASE("the data directory of a worker is refused as an outbox") {
  Scene scene;
  scene.worker.start();
  CHECK(scene.worker.stop() == 0);
  const Finished sent = run_command(scene.worker.send({"--outbox", scene.worker.data().string(), scene.file}));
  CHECK(sent.exit == 64);
  CHECK(scene.worker.rows() == Rows{0, 0});
}
