// The file `durable.mark` by itself. What an opening makes of it is in opening_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "store/durable_mark.hpp"
#include "support/file_content.hpp"
#include "support/store_harness.hpp"
#include "support/temp_directory.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

std::uint64_t read_again(const TempDirectory &directory) {
  const auto mark = DurableMark::open(directory.path(), true);
  REQUIRE(mark.has_value());
  return mark->sequence();
}

} // namespace

TEST_CASE("the mark is its sequence and then its logs") {
  const TempDirectory directory;
  auto mark = DurableMark::create(directory.path());
  REQUIRE(mark.has_value());
  CHECK(mark->sequence() == 0);
  mark->advance(0x0102030405060708);
  mark->remember(std::vector<LogFile>{{.number = 0x0A0B, .bytes = 0x0C0D}});
  const std::string content = content_of(directory.path() / "durable.mark");
  CHECK(content.size() == 32 + 64 * 16);
  CHECK(content.substr(0, 48) == std::string("onced mark 2\0\0\0\n"
                                             "\x08\x07\x06\x05\x04\x03\x02\x01\0\0\0\0\0\0\0\0"
                                             "\x0B\x0A\0\0\0\0\0\0\x0D\x0C\0\0\0\0\0\0",
                                             48));
  CHECK(content.find_first_not_of('\0', 48) == std::string::npos);
  CHECK(read_again(directory) == 0x0102030405060708);
}

TEST_CASE("the mark only rises unless it is reset") {
  const TempDirectory directory;
  auto mark = DurableMark::create(directory.path());
  REQUIRE(mark.has_value());
  mark->advance(100);
  mark->advance(99);
  CHECK(mark->sequence() == 100);
  CHECK(read_again(directory) == 100);
  CHECK(mark->reset(7).has_value());
  CHECK(mark->sequence() == 7);
  CHECK(read_again(directory) == 7);
}

TEST_CASE("the newest logs are remembered with the most bytes that they had") {
  const TempDirectory directory;
  auto mark = DurableMark::create(directory.path());
  REQUIRE(mark.has_value());
  for (std::uint64_t number = 1; number <= 100; ++number)
    mark->remember(std::vector<LogFile>{{.number = number, .bytes = 10 * number}});
  mark->remember(std::vector<LogFile>{{.number = 100, .bytes = 0}, {.number = 3, .bytes = 30}});
  const auto again = DurableMark::open(directory.path(), true);
  REQUIRE(again.has_value());
  auto logs = again->complete_logs();
  CHECK(logs == mark->complete_logs());
  REQUIRE(logs.size() == 64);
  std::sort(logs.begin(), logs.end(),
            [](const LogFile &left, const LogFile &right) { return left.number < right.number; });
  CHECK(logs.front() == LogFile{.number = 37, .bytes = 370});
  CHECK(logs.back() == LogFile{.number = 100, .bytes = 1000});
  CHECK(mark->reset(7).has_value());
  CHECK(DurableMark::open(directory.path(), true)->complete_logs().empty());
}

TEST_CASE("a mark of the first form is read and made anew by who may write") {
  const TempDirectory directory;
  const auto path = directory.path() / "durable.mark";
  const std::string first("onced mark 1\0\0\0\n\x07\0\0\0\0\0\0\0", 24);
  std::ofstream(path, std::ios::binary) << first;
  CHECK(read_again(directory) == 7);
  CHECK(content_of(path) == first);
  auto mark = DurableMark::open(directory.path(), false);
  REQUIRE(mark.has_value());
  CHECK(mark->sequence() == 7);
  mark->remember(std::vector<LogFile>{{.number = 4, .bytes = 40}});
  CHECK(read_again(directory) == 7);
  CHECK(DurableMark::open(directory.path(), true)->complete_logs() == std::vector<LogFile>{{.number = 4, .bytes = 40}});
}

TEST_CASE("threads that raise it together leave the highest") {
  const TempDirectory directory;
  auto mark = DurableMark::create(directory.path());
  REQUIRE(mark.has_value());
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (std::uint64_t step = 0; step < 1'000; ++step)
        mark->advance(step * 4 + number);
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(read_again(directory) == 3'999);
}

TEST_CASE("a file that is no mark is refused and a missing one not found") {
  const TempDirectory directory;
  const auto absent = DurableMark::open(directory.path(), false);
  REQUIRE(!absent.has_value());
  CHECK(absent.error().code == ErrorCode::not_found);
  for (const std::string &content :
       {std::string(), std::string("onced mark 1\0\0\0\n1234567", 23), std::string(24, 'x')}) {
    std::ofstream(directory.path() / "durable.mark", std::ios::binary | std::ios::trunc) << content;
    const auto refused = DurableMark::open(directory.path(), false);
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::corrupt);
    CHECK(refused.error().concerns == (directory.path() / "durable.mark").string());
  }
}

TEST_CASE("an unfinished draft of a mark is no mark and does not stand in the way") {
  const TempDirectory directory;
  std::ofstream(directory.path() / "durable.mark.new") << "half";
  CHECK(!DurableMark::open(directory.path(), false).has_value());
  CHECK(DurableMark::create(directory.path()).has_value());
  CHECK(read_again(directory) == 0);
  CHECK(!std::filesystem::exists(directory.path() / "durable.mark.new"));
}
