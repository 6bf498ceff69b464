#include <array>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/scratch_directory.hpp"
#include "line_reader.hpp"
#include "output.hpp"
#include "query.hpp"
#include "support/copy.hpp"

using namespace onced;
using namespace onced::tools;

namespace {

const MonotonicTime never = MonotonicTime::max();

struct Read {
  std::vector<std::string> lines; // "too long" in place of one that is
  std::uint64_t number = 0;
};

Read read_all(const std::string &content, std::size_t bytes_max) {
  const ScratchDirectory directory;
  const std::string path = directory.path() / "lines";
  std::ofstream(path) << content;
  const auto file = InputFile::open(path);
  REQUIRE(file.has_value());
  const StopEvent stop;
  LineReader reader(*file, bytes_max, stop, never);
  Read read;
  std::string_view line;
  for (;;) {
    const auto end = reader.next(line);
    REQUIRE(end.has_value());
    if (*end == ReadEnd::end) break;
    read.lines.emplace_back(*end == ReadEnd::too_long ? "too long" : line);
  }
  read.number = reader.number();
  return read;
}

} // namespace

TEST_CASE("lines are read without their ends and the last needs none") {
  using Lines = std::vector<std::string>;
  CHECK(read_all("", 10).lines.empty());
  CHECK(read_all("a\n\nb", 10).lines == Lines{"a", "", "b"});
  CHECK(read_all("a\n", 10).lines == Lines{"a"});
  CHECK(read_all("\n", 10).lines == Lines{""});
  CHECK(read_all("a\n\nb", 10).number == 3);
}

TEST_CASE("a line over the limit is passed over and the next is read") {
  using Lines = std::vector<std::string>;
  CHECK(read_all("1234\n12345\n6", 4).lines == Lines{"1234", "too long", "6"});
  CHECK(read_all(std::string(3'000'000, 'x') + "\nb\n", 4).lines == Lines{"too long", "b"});
  CHECK(read_all("a\n" + std::string(3'000'000, 'x'), 4).lines == Lines{"a", "too long"});
  const std::string long_line(2'500'000, 'y');
  CHECK(read_all(long_line + "\n" + long_line + "\nz", 2'500'000).lines == Lines{long_line, long_line, "z"});
}

TEST_CASE("waiting for input ends at the deadline and at a stop") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const auto file = InputFile::open("/dev/fd/" + std::to_string(ends[0]));
  REQUIRE(file.has_value());
  std::string_view line;
  StopEvent stop;
  LineReader late(*file, 10, stop, std::chrono::steady_clock::now() + std::chrono::milliseconds{20});
  CHECK(late.next(line).value() == ReadEnd::interrupted);
  LineReader stopped(*file, 10, stop, never);
  std::thread stopper([&] { stop.request(); });
  CHECK(stopped.next(line).value() == ReadEnd::interrupted);
  stopper.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a file that is absent or a directory is not found") {
  const ScratchDirectory directory;
  for (const std::string &path : {std::string(directory.path() / "absent"), directory.path().string()}) {
    const auto file = InputFile::open(path);
    REQUIRE_FALSE(file.has_value());
    CHECK(file.error().code == ErrorCode::not_found);
  }
}

TEST_CASE("raw bytes are read to the end or to one byte over the limit") {
  const ScratchDirectory directory;
  const std::string path = directory.path() / "raw";
  std::ofstream(path) << std::string(1000, 'x');
  const StopEvent stop;
  for (const auto &[limit, size] :
       std::vector<std::pair<std::size_t, std::size_t>>{{1000, 1000}, {999, 1000}, {10, 11}}) {
    const auto file = InputFile::open(path);
    REQUIRE(file.has_value());
    std::string bytes;
    REQUIRE(LineReader(*file, limit, stop, never).rest(bytes).has_value());
    CHECK(bytes.size() == size);
  }
}

TEST_CASE("an output that takes no more is an error that says why") {
  const int full = ::open("/dev/full", O_WRONLY);
  REQUIRE(full >= 0);
  Output output(full);
  output.line({{"a", 1}});
  CHECK_FALSE(output.failed()); // nothing was written yet
  const auto flushed = output.flush();
  REQUIRE_FALSE(flushed.has_value());
  CHECK(flushed.error().code == ErrorCode::store_unavailable);
  CHECK(flushed.error().cause == "No space left on device");
  CHECK(output.failed());
  CHECK_FALSE(output.flush().has_value()); // and it stays an error
  ::close(full);
}

TEST_CASE("a second of two signals ends the process at once with 128 and its number") {
  const ProcessEnd end = testing::do_in_copy([] {
    std::array<int, 2> told{};
    if (::pipe(told.data()) != 0) _exit(1);
    const SignalWatch watch([&](int number) {
      const char byte = static_cast<char>(number);
      if (::write(told[1], &byte, 1) != 1) _exit(2);
    });
    ::kill(::getpid(), SIGTERM);
    char byte = 0;
    if (::read(told[0], &byte, 1) != 1 || byte != SIGTERM) _exit(3);
    ::kill(::getpid(), SIGINT);
    ::pause();
  });
  CHECK(end.exit_code() == 128 + SIGINT);
}

TEST_CASE("times are printed as ISO 8601 with microseconds") {
  CHECK(iso_time(1'000'000'000'123'456) == "2001-09-09T01:46:40.123456Z");
  CHECK(iso_time(0).is_null());
  CHECK(iso_time(-1) == "1969-12-31T23:59:59.999999Z");
  CHECK(iso_time(253'402'300'799'999'999) == "9999-12-31T23:59:59.999999Z");
  CHECK(iso_time(INT64_MAX) == INT64_MAX);
}

TEST_CASE("an answer is printed for people") {
  const Json row{{"found", true},
                 {"operation_id", "a"},
                 {"effect_key", ""},
                 {"issued_at_us", 0},
                 {"committed_at_us", 1'000'000},
                 {"result", {{"thumbnail", Json::binary({0x06})}, {"sum", 6}}},
                 {"digest", Json::binary({0xab, 0x01})},
                 {"deliveries", 3}};
  CHECK(
      dump(for_people(row)) ==
      R"({"found":true,"operation_id":"a","effect_key":null,"issued_at":null,)"
      R"("committed_at":"1970-01-01T00:00:01.000000Z","result":{"thumbnail":"06","sum":6},"digest":"ab01","deliveries":3})");
}

TEST_CASE("a query needs exactly one place to ask") {
  QueryTarget target;
  CHECK(run_query(target, "count", Json::object(), never).error().code == ErrorCode::usage);
  target.data = "a";
  target.replies = "b";
  CHECK(run_query(target, "count", Json::object(), never).error().code == ErrorCode::usage);
}

TEST_CASE("what a terminal would obey is shown by its number and the rest as it is") {
  CHECK(visible("") == "");
  CHECK(visible("plain, \xC3\xA4, \xE2\x82\xAC, \xF0\x9F\x90\x98") ==
        "plain, \xC3\xA4, \xE2\x82\xAC, \xF0\x9F\x90\x98");
  CHECK(visible(std::string("\0\a\t\n\r\x1b[0m\x1f \x7f", 12)) ==
        R"(\u0000\u0007\u0009\u000a\u000d\u001b[0m\u001f \u007f)");
  CHECK(visible("\xC2\x80 \xC2\x9B \xC2\x9F \xC2\xA0") == "\\u0080 \\u009b \\u009f \xC2\xA0");
  CHECK(visible("\xD8\x9C\xE2\x80\x8E\xE2\x80\x8F") == R"(\u061c\u200e\u200f)");
  CHECK(visible("\xE2\x80\xA7\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA\xE2\x80\xAE\xE2\x80\xAF") ==
        "\xE2\x80\xA7\\u2028\\u2029\\u202a\\u202e\xE2\x80\xAF");
  CHECK(visible("\xE2\x81\xA5\xE2\x81\xA6\xE2\x81\xA9\xE2\x81\xAA") == "\xE2\x81\xA5\\u2066\\u2069\xE2\x81\xAA");
  CHECK(visible("a\x9b"
                "31m\xC2") == "a\xEF\xBF\xBD"
                              "31m\xEF\xBF\xBD"); // no UTF-8
}
