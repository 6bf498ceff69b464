// The input of `send` and what it prints and exits with.
#include <fstream>

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
  const TempDirectory directory;
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
