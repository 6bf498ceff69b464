#include "console_log.hpp"

#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace onced;
using namespace onced::tools;

namespace {

class HandClock final : public Clock {
public:
  WallTime wall() override { return WallTime{std::chrono::microseconds{1'000'000'000'123'456}}; }
  MonotonicTime monotonic() override { return now; }
  MonotonicTime now{std::chrono::hours{1}};
};

std::vector<std::string> lines_of(const std::ostringstream &out) {
  std::vector<std::string> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

const Event sample{EventLevel::warning,
                   "store.slow",
                   {{"took_us", std::int64_t{-5}},
                    {"bytes", std::uint64_t{18'446'744'073'709'551'615U}},
                    {"again", true},
                    {"file", std::string("/tmp/a b")},
                    {"name", std::string("plain")},
                    {"none", std::string()}}};

} // namespace

TEST_CASE("an event is one line of time and level and name and fields") {
  HandClock clock;
  std::ostringstream out;
  ConsoleLog(LogFormat::text, clock, out).write(sample);
  CHECK(out.str() == "2001-09-09T01:46:40.123456Z warning store.slow took_us=-5 bytes=18446744073709551615 again=true "
                     "file=\"/tmp/a b\" name=plain none=\"\"\n");
}

TEST_CASE("an event as JSON is one object with the same fields") {
  HandClock clock;
  std::ostringstream out;
  ConsoleLog(LogFormat::json, clock, out).write(sample);
  CHECK(out.str() == R"({"time":"2001-09-09T01:46:40.123456Z","level":"warning","event":"store.slow","took_us":-5,)"
                     R"("bytes":18446744073709551615,"again":true,"file":"/tmp/a b","name":"plain","none":""})"
                     "\n");
}

TEST_CASE("no value can end a line or reach the terminal as a control character") {
  const std::string hostile = "a\nb\r\x1b[2J\x7f\"\\=\xff\xc2\x9b\xe2\x80\xa8\t %v {}" + std::string(1, '\0');
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    HandClock clock;
    std::ostringstream out;
    ConsoleLog(format, clock, out).write({EventLevel::error, "job.refused", {{"detail", hostile}}});
    const std::string line = out.str();
    REQUIRE_FALSE(line.empty());
    CHECK(line.find('\n') == line.size() - 1);
    for (const char character : line.substr(0, line.size() - 1)) {
      CAPTURE(line);
      CHECK((character >= ' ' && character <= '~'));
    }
  }
}

TEST_CASE("a value that looks like more fields stays one value") {
  HandClock clock;
  std::ostringstream out;
  ConsoleLog(LogFormat::text, clock, out).write({EventLevel::info, "a.b", {{"id", std::string("x y=z")}}});
  CHECK(out.str().find(" a.b id=\"x y=z\"\n") != std::string::npos);
}

TEST_CASE("the eleventh line of a name within a second is counted instead of written") {
  HandClock clock;
  std::ostringstream out;
  ConsoleLog log(LogFormat::text, clock, out);
  for (int at = 0; at < 25; ++at) {
    log.write({EventLevel::info, "much", {}});
  }
  log.write({EventLevel::info, "other", {}});
  CHECK(lines_of(out).size() == log_lines_per_second_max + 1);
  clock.now += std::chrono::seconds{1};
  log.write({EventLevel::info, "much", {{"n", std::int64_t{1}}}});
  log.write({EventLevel::info, "much", {{"n", std::int64_t{2}}}});
  const auto lines = lines_of(out);
  REQUIRE(lines.size() == log_lines_per_second_max + 3);
  CHECK(lines[log_lines_per_second_max + 1].find(" much n=1 suppressed=15") != std::string::npos);
  CHECK(lines[log_lines_per_second_max + 2].find("suppressed") == std::string::npos);
}

TEST_CASE("what was suppressed last is told at the end") {
  HandClock clock;
  std::ostringstream out;
  {
    ConsoleLog log(LogFormat::json, clock, out);
    for (int at = 0; at < 12; ++at) {
      log.write({EventLevel::info, "much", {}});
    }
  }
  const auto lines = lines_of(out);
  REQUIRE(lines.size() == log_lines_per_second_max + 1);
  const auto last = nlohmann::json::parse(lines.back());
  CHECK(last.at("event") == "log.suppressed");
  CHECK(last.at("name") == "much");
  CHECK(last.at("suppressed") == 2);
}

TEST_CASE("a line that nobody takes is counted and the next one tells how many there were") {
  HandClock clock;
  std::ostringstream out;
  ConsoleLog log(LogFormat::text, clock, out);
  log.write({EventLevel::info, "first", {}});
  out.setstate(std::ios::badbit);
  log.write({EventLevel::info, "lost", {}});
  log.write({EventLevel::info, "lost", {}});
  out.clear();
  log.write({EventLevel::info, "next", {}});
  log.write({EventLevel::info, "last", {}});
  const auto lines = lines_of(out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].find(" next dropped=2") != std::string::npos);
  CHECK(lines[2].find("dropped") == std::string::npos);
}
