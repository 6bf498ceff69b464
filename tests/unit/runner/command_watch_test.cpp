// Verifies how a command that runs is watched and ended: the job's lock, its deadline, the bounds of its output, how it
// is asked to stop, and its lease. Not verified here: leases and the store.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "support/file_content.hpp"
#include "unit/runner/command_bench.hpp"

namespace onced::runner::testing {

TEST_CASE("while somebody holds the job's lock its command is not started") {
  CommandBench bench;
  bench.script("exit 0");
  {
    const auto lock = take_lock(bench.job.lock_file);
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

} // namespace onced::runner::testing
