// Queued jobs through real workers and real commands: what a command is given, what each of its ends leads to, how
// often it runs, and that nothing of it runs beside itself, whatever ends in between. What this does not show: effects
// outside (effects_test.cpp), and many kills (tests/handlers).
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/stat.h>

#include "support/file_content.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A worker whose handlers are shell scripts in a directory of its own, which is where they keep their notes: $NOTES.
class Shop {
public:
  // Adds [handlers.TYPE] with this script; `more` is more of its table.
  void add(const std::string &type, const std::string &script, const std::string &more = {}) {
    write_script(type, script);
    config_ += "[handlers." + type + "]\ncommand = [\"" + path_of(type) +
               "\"]\nenvironment = { PATH = \"/usr/bin:/bin\"" + ", NOTES = \"" + directory_.path().string() +
               "\" }\nbackoff = \"10ms\"\nbackoff-max = \"50ms\"\n" + more + "\n";
    std::ofstream(config_file()) << config_;
  }
  void write_script(const std::string &type, const std::string &script) {
    std::ofstream(path_of(type)) << "#!/bin/sh\nset -u\n" << script;
    REQUIRE(::chmod(path_of(type).c_str(), 0700) == 0);
  }

  void start(const Arguments &more = {}) { worker.start(Arguments{"--config", config_file()} + more); }
  Finished send(const std::string &jobs, const Arguments &more = {}) {
    return run_command(worker.send(Arguments{"--ask-again", "100ms"} + more), jobs);
  }
  // Scripts that wait for the test go on.
  void let_go() const { std::ofstream(notes("go")) << '\n'; }
  // The notes that scripts have appended to this file.
  [[nodiscard]] std::filesystem::path notes(const std::string &name) const { return directory_.path() / name; }
  [[nodiscard]] std::string stat(const std::string &name) const {
    return run_command(Arguments{"stats", "--data", worker.data().string()}).line()[name];
  }

  WorkerProcess worker;

private:
  [[nodiscard]] std::string path_of(const std::string &type) const {
    return (directory_.path() / type).string() + ".sh";
  }
  [[nodiscard]] std::string config_file() const { return (directory_.path() / "onced.toml").string(); }

  ScratchDirectory directory_;
  std::string config_;
};

std::string job(const std::string &type, const std::string &id, const std::string &more = {}) {
  return R"({"operation_id":")" + id + R"(","type":")" + type + "\"" + more + "}\n";
}

std::string jobs_of(const std::string &type, std::size_t count) {
  std::string jobs;
  for (std::size_t at = 1; at <= count; ++at)
    jobs += job(type, "j" + std::to_string(at));
  return jobs;
}

// Notes that it has begun and ended, and the other way round where another run of the same job is under way.
constexpr const char *notes_runs = R"(
mkdir "$NOTES/$ONCED_OPERATION_ID.runs" || echo "beside itself" >> "$NOTES/overlaps"
echo "$ONCED_ATTEMPT" >> "$NOTES/runs"
)";
// Goes on when the test says so.
constexpr const char *waits = "until [ -e \"$NOTES/go\" ]; do sleep 0.01; done\n";
constexpr const char *notes_end = "rmdir \"$NOTES/$ONCED_OPERATION_ID.runs\"\n";

} // namespace

TEST_CASE("a command is given the payload and the names of its job and its output is the result") {
  Shop shop;
  shop.add("echo", R"(input=$(cat)
echo "{\"payload\":$input,\"id\":\"$ONCED_OPERATION_ID\",\"attempt\":$ONCED_ATTEMPT,\"trace\":\"$TRACEPARENT\"}"
echo "$ONCED_IDEMPOTENCY_KEY $ONCED_FENCING_TOKEN" > "$NOTES/names"
env | sed 's/=.*//' | sort | tr '\n' ' ' > "$NOTES/environment"
)");
  shop.start();
  const std::string trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
  const auto sent =
      shop.send(job("echo", "a", R"(,"text":"é","list":[1,2.5,null,true],"traceparent":")" + trace + "\""));
  CHECK(sent.exit == 0);
  CHECK(sent.line()["outcome"] == "stored");
  const std::string result =
      R"({"attempt":1,"id":"a","payload":{"list":[1,2.5,null,true],"text":"é"},"trace":")" + trace + "\"}";
  CHECK(sent.line()["result"] == result);
  const auto row = run_command({"get", "a", "--type", "echo", "--data", shop.worker.data().string()});
  CHECK(row.line()["result"] == result);
  CHECK(content_of(shop.notes("names")).size() == 64 + 1 + 32 + 1);
  CHECK(content_of(shop.notes("environment")) == "NOTES ONCED_ATTEMPT ONCED_FENCING_TOKEN ONCED_IDEMPOTENCY_KEY "
                                                 "ONCED_OPERATION_ID PATH PWD TRACEPARENT ");
  CHECK(shop.worker.stop() == 0);
}

TEST_CASE("a command that exits with 65 has refused the job for good and its stderr is kept") {
  Shop shop;
  shop.add("picky", "cat > /dev/null; echo run >> \"$NOTES/runs\"; echo 'no such size' >&2; exit 65\n");
  shop.start();
  CHECK(shop.send(job("picky", "a")).line()["outcome"] == "failed");
  CHECK(lines_in(shop.notes("runs")) == 1);
  const auto letters = dead_letters(shop.worker.data());
  REQUIRE(letters.size() == 1);
  CHECK(letters[0]["reason"] == "failed");
  CHECK(letters[0]["detail"].find("no such size") != std::string::npos);
  // Asked again it says the same, and nothing runs again.
  CHECK(shop.send(job("picky", "a")).line()["outcome"] == "failed");
  CHECK(lines_in(shop.notes("runs")) == 1);
  CHECK(shop.worker.rows() == Rows{0, 1});
}

TEST_CASE("a job is tried again after any other end and then its result stands") {
  for (const std::string end : {"exit 75", "exit 1", "kill -9 $$", "sleep 60", "echo no JSON; exit 0",
                                "head -c 400000 /dev/zero; exit 0", "exit 0"}) {
    CAPTURE(end);
    Shop shop;
    shop.add("flaky",
             "cat > /dev/null; echo run >> \"$NOTES/runs\"\n[ $ONCED_ATTEMPT -lt 3 ] && { " + end +
                 "; }\necho \"$ONCED_ATTEMPT\"\n",
             "deadline = \"500ms\"");
    shop.start();
    const auto sent = shop.send(job("flaky", "a"));
    CHECK(sent.line()["result"] == "3");
    CHECK(lines_in(shop.notes("runs")) == 3);
    CHECK(shop.worker.rows() == Rows{1, 0});
    CHECK(shop.stat("queue_tried_again") == "2");
  }
}

TEST_CASE("a job that always fails runs as often as allowed and so again after a redrive") {
  Shop shop;
  shop.add("broken",
           "cat > /dev/null; echo \"$ONCED_ATTEMPT\" >> \"$NOTES/runs\"; echo \"try $ONCED_ATTEMPT\" >&2; exit 1\n",
           "max-receive-count = 3");
  shop.start();
  CHECK(shop.send(job("broken", "a")).line()["outcome"] == "failed");
  CHECK(content_of(shop.notes("runs")) == "1\n2\n3\n");
  const auto letter = dead_letters(shop.worker.data()).at(0);
  CHECK(letter["receives"] == "3");
  CHECK(letter["detail"].find("try 3") != std::string::npos);

  const std::string data = shop.worker.data().string();
  CHECK(run_command({"dead-letters", "redrive", letter["id"], "--by", "t", "--why", "w", "--data", data})
            .line()["outcome"] == "accepted");
  CHECK(eventually([&] { return lines_in(shop.notes("runs")) == 6 && shop.worker.rows() == Rows{0, 1}; }));
  CHECK(content_of(shop.notes("runs")) == "1\n2\n3\n1\n2\n3\n");
  CHECK(dead_letters(shop.worker.data()).at(0)["receives"] == "6");
  CHECK(run_command({"verify", "--data", data}).exit == 0);
}

TEST_CASE("a command that cannot be started uses up no receive") {
  Shop shop;
  shop.add("absent", "exit 0\n", "max-receive-count = 1");
  const auto script = shop.notes("absent.sh");
  std::filesystem::remove(script);
  shop.start();
  Process sender({.arguments = shop.worker.send({"--ask-again", "100ms"}), .input = job("absent", "a")});
  CHECK(eventually([&] { return std::stoi(shop.stat("queue_not_started")) >= 3; }));
  CHECK(shop.stat("queue_receives") == "0");
  shop.write_script("absent", "cat > /dev/null; echo \"$ONCED_ATTEMPT\"\n");
  const auto sent = finish(sender);
  CHECK(sent.line()["result"] == "1");
}

TEST_CASE("a heartbeat keeps the lease of a handler that takes longer than its visibility timeout") {
  Shop shop;
  shop.add("slow", std::string("cat > /dev/null") + notes_runs + "sleep 1.5\n" + notes_end + "echo 1\n",
           "visibility-timeout = \"300ms\"");
  shop.start();
  CHECK(shop.send(job("slow", "a")).line()["outcome"] == "stored");
  CHECK(lines_in(shop.notes("runs")) == 1);
  CHECK(shop.stat("queue_expired") == "0");
}

TEST_CASE("without heartbeats the second run stands and the late one is refused and logged") {
  Shop shop;
  // The first ends only when its lease has expired.
  shop.add("slow",
           std::string("cat > /dev/null") + notes_runs + "if [ $ONCED_ATTEMPT = 1 ]; then " + waits + "fi\n" +
               notes_end + "echo \"$ONCED_ATTEMPT\"\n",
           "visibility-timeout = \"500ms\"");
  shop.start({"--cut-heartbeats"});
  Process sender({.arguments = shop.worker.send({"--ask-again", "100ms"}), .input = job("slow", "a")});
  CHECK(eventually([&] { return shop.stat("queue_expired") == "1"; }));
  shop.let_go();
  const auto sent = finish(sender);
  CHECK(sent.line()["result"] == "2");
  CHECK(content_of(shop.notes("runs")) == "1\n2\n");
  CHECK_FALSE(std::filesystem::exists(shop.notes("overlaps")));
  CHECK(shop.stat("queue_late") == "1");
  CHECK(shop.worker.process().errors().find("handler.late") != std::string::npos);
  CHECK(shop.worker.rows() == Rows{1, 0});
}

TEST_CASE("a type that hangs does not hold up another") {
  Shop shop;
  shop.add("hangs", "cat > /dev/null; echo run >> \"$NOTES/hangs\"; exec sleep 600\n",
           "deadline = \"10m\"\nconcurrency = 2");
  shop.add("quick", "cat > /dev/null; echo 1\n");
  shop.start();
  Process hanging({.arguments = shop.worker.send(), .input = jobs_of("hangs", 20)});
  CHECK(eventually([&] { return lines_in(shop.notes("hangs")) == 2; }));
  const auto sent = shop.send(jobs_of("quick", 50));
  CHECK(sent.exit == 0);
  CHECK(tally_text(sent.lines(), "result") == "1 50");
  CHECK(lines_in(shop.notes("hangs")) == 2);
}

TEST_CASE("a sender whose final replies are lost learns the outcomes by asking again and nothing runs again") {
  Shop shop;
  shop.add("good", "cat > /dev/null; echo run >> \"$NOTES/runs\"; echo 1\n", "concurrency = 4");
  shop.add("bad", "cat > /dev/null; echo run >> \"$NOTES/runs\"; exit 65\n");
  shop.start({"--drop-replies", "0.7", "--seed", "3"});
  const auto sent = shop.send(jobs_of("good", 20) + jobs_of("bad", 5),
                              {"--acknowledgement-timeout", "200ms", "--acknowledgement-timeout-max", "400ms"});
  CHECK(sent.lines().size() == 25);
  CHECK(tally(sent.lines(), "outcome")["failed"] == 5);
  CHECK(lines_in(shop.notes("runs")) == 25);
  CHECK(shop.worker.rows() == Rows{20, 5});
}

TEST_CASE("copies of a job in progress are accepted and never run beside it or after it") {
  Shop shop;
  shop.add("slow", std::string("cat > /dev/null") + notes_runs + waits + notes_end + "echo 1\n", "concurrency = 8");
  shop.start();
  Process sender(
      {.arguments = shop.worker.send({"--ask-again", "100ms", "--copies", "5"}), .input = jobs_of("slow", 8)});
  CHECK(eventually([&] { return std::stoi(shop.stat("accepted")) >= 40; })); // all copies came while it is in progress
  shop.let_go();
  const auto sent = finish(sender);
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == 40);
  CHECK(lines_in(shop.notes("runs")) == 8);
  CHECK_FALSE(std::filesystem::exists(shop.notes("overlaps")));
  CHECK(shop.worker.rows() == Rows{8, 0});
}

TEST_CASE("a queued and an inline job under one effect key have one effect") {
  for (const bool queued_first : {true, false}) {
    CAPTURE(queued_first);
    Shop shop;
    shop.add("slow", "cat > /dev/null; echo run >> \"$NOTES/runs\"; echo 1\n");
    shop.start();
    const std::string queued = job("slow", "q", R"(,"effect_key":"order 7")");
    const std::string inlined = job("sum", "i", R"(,"effect_key":"order 7","numbers":[1])");
    CHECK(shop.send(queued_first ? queued : inlined).line()["outcome"] == "stored");
    CHECK(shop.send(queued_first ? inlined : queued).line()["outcome"] == "conflict");
    CHECK(lines_in(shop.notes("runs")) == (queued_first ? 1U : 0U));
    CHECK(shop.worker.rows() == Rows{1, 1});
  }
}

TEST_CASE("the children of a worker that is killed end and their jobs wait for what they have started") {
  Shop shop;
  // The first run leaves a process behind, in a session of its own, that outlives the worker.
  shop.add("slow", R"(cat > /dev/null
echo "begins $ONCED_ATTEMPT" >> "$NOTES/story"
[ $ONCED_ATTEMPT = 2 ] && { echo 2; exit 0; }
setsid sh -c 'sleep 2; echo "left behind ends" >> "$NOTES/story"' &
echo "$$" > "$NOTES/child"
exec sleep 600
)",
           "deadline = \"10m\"");
  shop.start();
  Process sender({.arguments = shop.worker.send({"--ask-again", "100ms"}), .input = job("slow", "a")});
  CHECK(eventually([&] { return lines_in(shop.notes("child")) == 1; }));
  const auto child = static_cast<pid_t>(std::stol(content_of(shop.notes("child"))));
  shop.worker.kill_now();
  CHECK(eventually([&] { return ::kill(child, 0) != 0; }));
  shop.start();
  CHECK(finish(sender).line()["result"] == "2");
  CHECK(content_of(shop.notes("story")) == "begins 1\nleft behind ends\nbegins 2\n");
  CHECK(shop.worker.rows() == Rows{1, 0});
}

TEST_CASE("a worker that is told to stop lets its handlers run on and hands nothing over any more") {
  Shop shop;
  shop.add("slow", std::string("cat > /dev/null; trap 'echo TERM >> \"$NOTES/signalled\"' TERM\n") +
                       "echo \"$ONCED_ATTEMPT\" >> \"$NOTES/runs\"\n" + waits + "echo 7\n");
  shop.start();
  Process sender({.arguments = shop.worker.send({"--ask-again", "100ms"}), .input = jobs_of("slow", 3)});
  CHECK(eventually([&] {
    const auto count = run_command({"count", "--data", shop.worker.data().string()}).line();
    return lines_in(shop.notes("runs")) == 1 && count["pending"] == "3";
  }));
  shop.worker.process().signal(SIGTERM);
  const auto drains = [&] { return shop.worker.process().errors().find("worker.draining") != std::string::npos; };
  CHECK(eventually(drains));
  shop.worker.process().signal(SIGTERM); // which changes nothing
  shop.let_go();
  const Finished drained = finish(shop.worker.process());
  CHECK(drained.exit == 0);
  CHECK(drained.output == "{\"event\":\"stopped\"}\n");
  CHECK(lines_in(shop.notes("signalled")) == 0);
  CHECK(lines_in(shop.notes("runs")) == 1);
  const auto counted = run_command({"count", "--data", shop.worker.data().string()}).line();
  CHECK(counted["results"] == "1");
  for (const Line &job : run_command({"pending", "list", "--data", shop.worker.data().string()}).lines())
    CHECK(job["receives"] == "0");
  shop.start();
  CHECK(finish(sender).lines().size() == 3);
  CHECK(content_of(shop.notes("runs")) == "1\n1\n1\n");
}

TEST_CASE("a worker that is told to stop signals its handlers after the drain timeout and lets them end within their "
          "grace period") {
  Shop shop;
  shop.add("ends",
           "cat > /dev/null; echo run >> \"$NOTES/ends\"; trap 'echo 7; exit 0' TERM; while :; do sleep 0.05; done\n");
  shop.add(
      "stays",
      "cat > /dev/null; echo \"$ONCED_ATTEMPT\" >> \"$NOTES/stays\"\n[ $ONCED_ATTEMPT = 2 ] && { echo 2; exit 0; }\n"
      "trap '' TERM; while :; do sleep 0.05; done\n",
      "grace = \"300ms\"");
  shop.start({"--drain-timeout", "100ms"});
  Process sender(
      {.arguments = shop.worker.send({"--ask-again", "100ms"}), .input = job("ends", "a") + job("stays", "b")});
  CHECK(eventually([&] { return lines_in(shop.notes("ends")) == 1 && lines_in(shop.notes("stays")) == 1; }));
  CHECK(shop.worker.stop() == 0);
  const auto counted = run_command({"count", "--data", shop.worker.data().string()}).line();
  CHECK(counted["results"] == "1");
  CHECK(counted["pending"] == "1");
  shop.start();
  const auto sent = finish(sender);
  CHECK(sent.lines().size() == 2);
  CHECK(lines_in(shop.notes("ends")) == 1);
  CHECK(lines_in(shop.notes("stays")) == 2);
  CHECK(shop.worker.rows() == Rows{2, 0});
}

TEST_CASE("a reconcile command that does not answer leaves the effect unknown however it ends") {
  for (const std::string end : {"exit 75", "exit 65", "exit 0", "echo nonsense"}) {
    CAPTURE(end);
    Shop shop;
    shop.write_script("asks", "cat > /dev/null; echo asked >> \"$NOTES/asked\"; " + end + "\n");
    shop.add("pay", "cat > /dev/null; echo called >> \"$NOTES/calls\"; exit 1\n",
             "external = true\npolicy = \"query\"\nmax-receive-count = 3\nreconcile = [\"" +
                 shop.notes("asks.sh").string() + "\"]");
    shop.start();
    Process sender({.arguments = shop.worker.send(), .input = job("pay", "a")});
    CHECK(eventually([&] { return shop.stat("queue_held") == "1"; }));
    CHECK(lines_in(shop.notes("calls")) == 1);
    CHECK(lines_in(shop.notes("asked")) == 2);
  }
}

TEST_CASE("queued jobs are counted when they end as what became of them") {
  Shop shop;
  shop.add("good", "cat > /dev/null; echo 1\n");
  shop.add("bad", "cat > /dev/null; exit 65\n");
  shop.start();
  CHECK(shop.send(jobs_of("good", 3) + jobs_of("bad", 2)).exit == 1);
  CHECK(shop.stat("stored") == "3");
  CHECK(shop.stat("failed") >= "2"); // and once more for each delivery that is told so
  CHECK(shop.stat("queue_handled") == "3");
  CHECK(shop.stat("queue_refused") == "2");
}

TEST_CASE("a sender says that its jobs are accepted and wait and that one is held as soon as it is") {
  Shop shop;
  shop.add("long", "cat > /dev/null; exec sleep 600\n", "deadline = \"10m\"");
  shop.add("pay", "cat > /dev/null; exit 1\n", "external = true\nowner = \"treasury\"");
  shop.start();
  const auto in_vain = [&](const std::string &type) {
    return Process::Options{.arguments = shop.worker.send({"--deadline", "4s", "--log-format", "json"}),
                            .input = job(type, "a")};
  };
  Process waiting(in_vain("long"));
  Process held(in_vain("pay"));
  for (Process *sender : {&waiting, &held}) {
    const Finished sent = finish(*sender);
    CHECK(sent.exit == 75);
    CHECK(sent.line()["outcome"] == "unsettled");
    CHECK(sent.line()["cause"] == "accepted");
    const bool says_held = sent.line()["detail"].find("held") != std::string::npos;
    CHECK(says_held == (sender == &held));
    CHECK((sent.line()["detail"].find("treasury decides") != std::string::npos) == says_held);
    CHECK(sent.errors.find(R"("event":"send.waits","cause":"accepted")") != std::string::npos);
    CHECK(sent.errors.find("1 unsettled (1 of them accepted)") != std::string::npos);
  }
  // Asked again the worker says where a job is.
  const auto asked = run_command(shop.worker.send({"--deadline", "1s"}), job("pay", "a")).line();
  CHECK(asked["detail"].find("treasury decides") != std::string::npos);
  CHECK(run_command(shop.worker.send({"--deadline", "1s"}), job("long", "a"))
            .line()["detail"]
            .find("its handler has it") != std::string::npos);
}

TEST_CASE("jobs wait while their type has no handler and run when it has one") {
  Shop shop;
  shop.add("later", "cat > /dev/null; exec sleep 600\n", "deadline = \"10m\"");
  shop.start();
  Process sender({.arguments = shop.worker.send({"--ask-again", "100ms"}), .input = jobs_of("later", 3)});
  CHECK(eventually([&] { return shop.stat("accepted") != "0" && shop.stat("queue_receives") == "1"; }));
  shop.worker.kill_now();
  shop.worker.start(); // without any handler
  CHECK(run_command({"verify", "--data", shop.worker.data().string()}).exit == 0);
  shop.worker.kill_now();
  shop.write_script("later", "cat > /dev/null; echo 1\n");
  shop.start();
  CHECK(tally_text(finish(sender).lines(), "result") == "1 3");
}

TEST_CASE("a queue at the cap that serve was given takes no more jobs until some have ended") {
  Shop shop;
  shop.add("slow", std::string(waits) + "echo 1\n");
  shop.start({"--queue-jobs-max", "2", "--queue-bytes-max", "1MiB", "--relay-messages-max", "16", "--relay-bytes-max",
              "2MiB", "--audit-rows-max", "10", "--dead-letter-rate", "64KiB"});
  Process sender({.arguments = shop.worker.send({"--ask-again", "100ms", "--acknowledgement-timeout", "100ms"}),
                  .input = jobs_of("slow", 4)});
  CHECK(eventually([&] { return std::stoul(shop.stat("busy")) > 0; }));
  CHECK(shop.stat("queue_jobs") == "2");
  shop.let_go();
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  CHECK(sent.lines().size() == 4);
  CHECK(shop.worker.stop() == 0);
}

TEST_CASE("a handler's table with a mistake is refused with its place in the file") {
  ScratchDirectory directory;
  const auto refused = [&](const std::string &table) {
    const auto file = directory.path() / "onced.toml";
    std::ofstream(file) << table;
    const auto run = run_command({"serve", "--data", (directory.path() / "d").string(), "--config", file.string()});
    CHECK(run.exit == 78);
    return run.errors;
  };
  const auto has = [](const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(refused("[handlers.a]\nconcurrency = 2\n"), "onced.toml:1: handlers.a"));
  CHECK(has(refused("[handlers.a]\ncommand = [\"x\"]\ncolour = 1\n"), "onced.toml:3: handlers.a.colour"));
  CHECK(has(refused("[handlers.a]\ncommand = \"x\"\n"), "array of strings"));
  CHECK(has(refused("[handlers.a]\ncommand = [\"x\"]\nconcurrency = 65\n"), "1 to 64"));
  CHECK(has(refused("[handlers.a]\ncommand = [\"x\"]\nowner = \"me\"\n"), "external = true"));
  CHECK(has(refused("[handlers.a]\ncommand = [\"x\"]\nexternal = true\npolicy = \"query\"\n"), "reconcile"));
  CHECK(has(refused("[handlers.sum]\ncommand = [\"x\"]\n"), "has a handler already"));
  CHECK(has(refused("[handlers.a]\ncommand = [\"x\"]\nenvironment = { ONCED_ATTEMPT = \"1\" }\n"), "the worker's"));
  CHECK(has(refused("[relays.b]\njobs = \"tcp://127.0.0.1:1\"\n"), "onced.toml:1: relays.b"));
  CHECK(has(refused("[handlers.a]\ncommand = [\"x\", \"a\\u0000b\"]\n"), "NUL"));
  CHECK(has(refused("[handlers.a]\ncommand = [\"x\"]\nenvironment = { \"\" = \"1\" }\n"), "has no name"));
  CHECK(has(refused("[handlers.a]\ncommand = [\"x\"]\nenvironment = { \"A=B\" = \"1\" }\n"), "has a '='"));
  CHECK(has(refused("[relays.b]\njobs = \"tcp://127.0.0.1:99999\"\n"), "onced.toml:2: relays.b.jobs"));
  CHECK(has(refused("[handlers]\na = 1\n"), "handlers.a"));
}

TEST_CASE("jobs that were refused or used their receives up or are held leave no file of a lock behind") {
  Shop shop;
  shop.add("held", "exit 1", "concurrency = 16\nexternal = true\nowner = \"treasury\"\n");
  shop.add("exhausted", "exit 1", "concurrency = 4\nmax-receive-count = 2\n");
  shop.add("fails", "exit 65", "concurrency = 4\n");
  shop.start({"--memory", "1GiB"});
  const auto files = [&] { return files_in(shop.worker.data() / "handler-locks"); };
  CHECK(shop.send(jobs_of("held", 250) + jobs_of("exhausted", 25) + jobs_of("fails", 25), {"--deadline", "1s"}).exit ==
        75);
  CHECK(eventually([&] { return shop.stat("queue_held") == "250" && shop.stat("queue_refused") == "50"; }));
  CHECK(files() == 0);
  CHECK(shop.worker.stop() == 0);
}
