// What every subcommand has: help, configuration, exit codes.
#include <fstream>

#include <doctest/doctest.h>

#include "onced/version.hpp"
#include "support/worker_process.hpp"

using namespace onced::testing;

namespace {

std::string file_with(const ScratchDirectory &directory, const std::string &name, const std::string &content) {
  const auto path = directory.path() / name;
  std::ofstream(path) << content;
  return path.string();
}

} // namespace

TEST_CASE("every subcommand has help with examples of itself") {
  const std::vector<Arguments> subcommands{{},
                                           {"serve"},
                                           {"send"},
                                           {"get"},
                                           {"count"},
                                           {"dead-letters"},
                                           {"dead-letters", "list"},
                                           {"dead-letters", "show"}};
  for (const Arguments &subcommand : subcommands) {
    std::string words = "onced";
    for (const std::string &word : subcommand)
      words += " " + word;
    CAPTURE(words);
    const Finished help = run_command(subcommand + Arguments{"--help"});
    CHECK(help.exit == 0);
    CHECK(help.errors.empty());
    CHECK(contains(help.output, "Examples:"));
    const std::string examples = help.output.substr(std::min(help.output.find("Examples:"), help.output.size()));
    CHECK(contains(examples, words));
  }
}

TEST_CASE("the version as JSON names what a report of a defect needs") {
  const Finished asked = run_command({"--version", "--json"});
  CHECK(asked.exit == 0);
  const Line version = asked.line();
  CHECK(version.names() == "version commit compiler build_type libraries rocksdb_asserts wire_versions disk_format");
  CHECK(version["wire_versions"] == "[1]");
  CHECK(version["disk_format"] == "4");
  for (const char *library : {"rocksdb", "libzmq", "openssl", "msgpack"}) {
    CAPTURE(library);
    CAPTURE(version["libraries"]);
    CHECK(contains(version["libraries"], library));
  }
  CHECK(contains(run_command({"--version"}).output, version["version"]));
}

TEST_CASE("wrong usage is exit code 64 and names the help to read") {
  const std::vector<Arguments> wrong{
      {},
      {"no-such-command"},
      {"serve"},
      {"serve", "--data", "d", "--no-such-option"},
      {"serve", "--data", "d", "--durability", "none"},
      {"serve", "--data", "d", "--kill-at", "worker.nowhere:1"},
      {"serve", "--data", "d", "--kill-at", "worker.parsed:0"},
      {"send", "--deadline", "60"},
      {"send", "--copies", "0"},
      {"send", "--window", "0"},
      {"send", "--raw", "--raw-message"},
      {"get", "a"},
      {"get", "--data", "d"},
      {"get", "", "--data", "d"},
      {"get", "a", "--data", "d", "--replies", "tcp://127.0.0.1:1"},
      {"count"},
      {"dead-letters"},
      {"dead-letters", "list"},
      {"dead-letters", "show", "xyz", "--data", "d"},
      {"--version", "count"},
  };
  for (const Arguments &arguments : wrong) {
    const Finished refused = run_command(arguments);
    CHECK(refused.exit == 64);
    CHECK(refused.output.empty());
    CHECK(contains(refused.errors, "onced: "));
  }
}

TEST_CASE("a number of worker threads that cannot be is exit code 64") {
  const WorkerProcess worker;
  CHECK(run_command(worker.serve({"--workers", "0"})).exit == 64);
  CHECK(run_command(worker.serve({"--workers", "65"})).exit == 64);
  CHECK(run_command(worker.serve({"--workers", "-1"})).exit == 64);
}

TEST_CASE("a worker that may open too few files is refused with exit code 71 before it takes a connection") {
  const ScratchDirectory directory;
  const Finished refused = run_command(Process::Options{.arguments = {"serve", "--data", directory.path() / "data"},
                                                        .wrapper = {"/usr/bin/prlimit", "--nofile=100:100"}});
  CHECK(refused.exit == 71);
  CHECK(contains(refused.errors, "may open only 100"));
  CHECK_FALSE(std::filesystem::exists(directory.path() / "data"));
}

TEST_CASE("a configuration file of one endless key is refused with exit code 78") {
  const ScratchDirectory directory;
  const auto file = directory.path() / "onced.toml";
  std::ofstream(file) << "[a" << [] {
    std::string parts;
    for (int part = 0; part < 100'000; ++part)
      parts += ".a";
    return parts;
  }() << "]\n";
  const Finished refused = run_command({"count", "--data", "d", "--config", file});
  CHECK(refused.exit == 78);
}

TEST_CASE("what must exist and does not is exit code 66") {
  const ScratchDirectory directory;
  const std::string absent = (directory.path() / "absent").string();
  const std::vector<Arguments> all{
      {"count", "--data", absent},
      {"get", "a", "--data", absent},
      {"dead-letters", "list", "--data", absent},
      {"dead-letters", "show", std::string(32, '0'), "--data", absent},
      {"count", "--data", directory.path().string()}, // a directory without a database
      {"send", absent},
      {"send", directory.path().string()},
      {"count", "--config", absent},
  };
  for (const Arguments &arguments : all) {
    const Finished refused = run_command(arguments);
    CHECK(refused.exit == 66);
    CHECK(contains(refused.errors, directory.path().string()));
  }
  CHECK_FALSE(std::filesystem::exists(absent));
}

TEST_CASE("an endpoint that is none is exit code 69") {
  const WorkerProcess worker;
  const std::string data = worker.data().string();
  CHECK(run_command({"serve", "--data", data, "--jobs", "no endpoint", "--replies", worker.replies()}).exit == 69);
  CHECK(run_command({"send", "--jobs", "no endpoint", "--replies", worker.replies()}).exit == 69);
  CHECK(run_command({"count", "--replies", "no endpoint"}).exit == 69);
  for (const std::string &wrong : {std::string("tcp://127.0.0.1:99999"), std::string("tcp://127.0.0.1:-1"),
                                   "ipc://" + std::string(108, 'p'), std::string("tcp://no.such.host.invalid:*")}) {
    const Finished refused = run_command({"serve", "--data", data, "--jobs", wrong, "--replies", worker.replies()});
    CHECK(refused.exit == 69);
    CHECK(contains(refused.errors, "onced: " + wrong + ": "));
  }
  CHECK_FALSE(std::filesystem::exists(data)); // told before there is anything
}

TEST_CASE("a worker can be bound to localhost and to IPv6, and be found there") {
  const ScratchDirectory directory;
  for (const std::string host : {"localhost", "[::1]"}) {
    CAPTURE(host);
    if (host != "localhost" && std::ifstream("/proc/net/if_inet6").peek() == EOF) continue; // no IPv6 here
    Process worker({.arguments = {"serve", "--data", directory.path() / host, "--jobs", "tcp://" + host + ":*",
                                  "--replies", "tcp://" + host + ":*"}});
    const auto line = worker.next_line();
    REQUIRE(line.has_value());
    const auto there = [&](const std::string &name) {
      const std::string bound = Line(*line)[name];
      return "tcp://" + host + bound.substr(bound.rfind(':'));
    };
    CHECK(run_command({"send", "--jobs", there("jobs"), "--replies", there("replies")}, jobs_as_json("job", 1)).exit ==
          0);
    worker.signal(SIGTERM);
    CHECK(worker.wait() == 0);
  }
}

TEST_CASE("stored data that is damaged is exit code 65") {
  WorkerProcess worker;
  worker.start();
  CHECK(worker.stop() == 0);
  std::ofstream(worker.data() / "db" / "CURRENT") << "nothing\n";
  const Finished served = run_command(worker.serve());
  CHECK(served.exit == 65);
  CHECK(contains(served.errors, worker.data().string()));
  CHECK(run_command({"count", "--data", worker.data().string()}).exit == 65);
}

TEST_CASE("acknowledged rows that are missing are exit code 65 until the loss is accepted by name") {
  WorkerProcess worker;
  worker.start();
  CHECK(run_command(worker.send(), jobs_as_json("job", 100)).exit == 0);
  worker.kill_now();
  for (const auto &file : std::filesystem::directory_iterator(worker.data() / "db")) {
    if (file.path().extension() == ".log") std::filesystem::resize_file(file.path(), 0);
  }
  const Finished refused = run_command(worker.serve());
  CHECK(refused.exit == 65);
  CHECK(contains(refused.errors, "--accept-loss"));
  worker.start({"--accept-loss"});
  CHECK(worker.rows().results < 100);
  CHECK(worker.stop() == 0);
  worker.start();
}

TEST_CASE("a standard output that takes nothing is exit code 74") {
  WorkerProcess worker;
  worker.start();
  CHECK(run_command(worker.send(), jobs_as_json("job", 1)).exit == 0);
  const std::string data = worker.data().string();
  for (const auto output : {Process::Output::closed, Process::Output::full_device}) {
    const auto run = [&](const Arguments &arguments, const std::string &input = {}) {
      return run_command(Process::Options{.arguments = arguments, .input = input, .output = output});
    };
    CHECK(run({"count", "--data", data}).exit == 74);
    CHECK(run({"get", "job-1", "--data", data}).exit == 74);
    CHECK(run({"--version"}).exit == 74);
    CHECK(run({"send", "--help"}).exit == 74);
    CHECK(run(worker.send(), jobs_as_json("job", 100)).exit == 74);
    const WorkerProcess other;
    CHECK(run(other.serve()).exit == 74);
  }
  CHECK(worker.rows().results >= 1); // and nothing was written into its files
}

TEST_CASE("an unknown key or table of a configuration file is exit code 78 and named with its line") {
  const ScratchDirectory directory;
  struct Case {
    const char *toml;
    const char *said;
  };
  for (const Case &wrong :
       {Case{"[count]\ndata = \"d\"\ndatum = 1\n", ":3: count.datum"}, Case{"[cuont]\n", ":1: cuont"},
        Case{"[count]\ndata = 7\n", ":2: count.data"}, Case{"[send]\nwindow = \"many\"\n", ":2: send.window"},
        Case{"[count\n", ":1"}, Case{"[send]\ndeadline = \"60\"\n", ":2: send.deadline"}}) {
    CAPTURE(wrong.toml);
    const std::string file = file_with(directory, "onced.toml", wrong.toml);
    // One file serves all subcommands; a value that has the right type is looked into by its own subcommand only.
    const std::string subcommand = contains(wrong.toml, "deadline") ? "send" : "count";
    const Finished refused = run_command({subcommand, "--config", file});
    CHECK(refused.exit == 78);
    CHECK(refused.output.empty());
    CHECK(contains(refused.errors, file + wrong.said));
  }
}

TEST_CASE("a configuration file gives what the command line does not and the command line wins") {
  const ScratchDirectory directory;
  WorkerProcess worker;
  const std::string file =
      file_with(directory, "onced.toml",
                "[serve]\ndata = \"" + worker.data().string() + "\"\njobs = \"" + worker.jobs() + "\"\nreplies = \"" +
                    worker.replies() + "\"\nworkers = 1\ndurability = \"page-cache\"\n\n[send]\njobs = \"" +
                    worker.jobs() + "\"\nreplies = \"" + worker.replies() + "\"\ncopies = 2\ndeadline = \"30s\"\n\n" +
                    "[count]\ndata = \"" + worker.data().string() + "\"\n");
  Process configured({.arguments = {"serve", "--config", file}});
  const Line ready(configured.next_line().value());
  CHECK(ready["jobs"] == worker.jobs());
  CHECK(ready["replies"] == worker.replies());
  CHECK(ready["durability"] == "page-cache");
  CHECK(run_command({"send", "--config", file}, jobs_as_json("job", 1)).lines().size() == 2);
  CHECK(run_command({"send", "--config", file, "--copies", "3"}, jobs_as_json("job", 1)).lines().size() == 3);
  CHECK(run_command({"count", "--config", file}).line()["results"] == "1");
  configured.kill_now();

  Process overruled({.arguments = {"serve", "--config", file, "--durability", "fsync"}});
  CHECK(Line(overruled.next_line().value())["durability"] == "fsync");
}

TEST_CASE("a worker that may choose its ports says which they are") {
  const ScratchDirectory directory;
  const std::string data = (directory.path() / "data").string();
  Process worker({.arguments = {"serve", "--data", data, "--jobs", "tcp://127.0.0.1:*", "--replies",
                                "tcp://127.0.0.1:*", "--log-format", "json"}});
  const Line ready(worker.next_line().value());
  CHECK(ready.names() == "event jobs replies boot durability");
  CHECK(ready["event"] == "ready");
  CHECK(ready["durability"] == "fsync");
  CHECK_FALSE(contains(ready["jobs"], "*"));
  CHECK(ready["jobs"] != ready["replies"]);
  const Finished sent =
      run_command({"send", "--jobs", ready["jobs"], "--replies", ready["replies"]}, jobs_as_json("job", 1));
  CHECK(sent.exit == 0);
  worker.signal(SIGTERM);
  const Finished stopped = finish(worker);
  CHECK(stopped.exit == 0);
  for (const Line &event : lines_of(stopped.errors))
    CHECK(event.names().substr(0, 16) == "time level event");
}

TEST_CASE("a data directory whose path is longer than a socket's may be works the same") {
  const ScratchDirectory directory;
  WorkerProcess worker(directory.path() / std::string(100, 'd') / std::string(100, 'e'));
  CHECK(worker.data().string().size() > 200);
  worker.start();
  CHECK(run_command(worker.send(), jobs_as_json("job", 2)).exit == 0);
  CHECK(worker.rows() == Rows{2, 0}); // through control.sock
  CHECK(std::filesystem::exists(worker.data() / "control.sock"));
  CHECK(worker.stop() == 0);
  CHECK(worker.rows() == Rows{2, 0});
  worker.start(); // beside the socket that the last one left
  CHECK(worker.rows() == Rows{2, 0});
}
