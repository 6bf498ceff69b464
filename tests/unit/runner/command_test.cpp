// Verifies how a command is started and fed and what each of its ends means, with small programs that behave well and
// badly. Not verified here: how it is watched (command_watch_test.cpp), and what it has of this process
// (command_isolation_test.cpp).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "support/file_content.hpp"
#include "unit/runner/command_bench.hpp"

namespace onced::runner::testing {

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

} // namespace onced::runner::testing
