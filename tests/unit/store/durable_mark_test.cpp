// The file `durable.mark` by itself. What an opening makes of it is in opening_test.cpp.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "store/durable_mark.hpp"
#include "support/store_harness.hpp"
#include "support/temp_directory.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

std::string content_of(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::uint64_t read_again(const TempDirectory &directory) {
  const auto mark = DurableMark::open(directory.path(), true);
  REQUIRE(mark.has_value());
  return mark->sequence();
}

} // namespace

TEST_CASE("the mark is 24 bytes of which the last eight are the sequence") {
  const TempDirectory directory;
  auto mark = DurableMark::create(directory.path());
  REQUIRE(mark.has_value());
  CHECK(mark->sequence() == 0);
  mark->advance(0x0102030405060708);
  CHECK(content_of(directory.path() / "durable.mark") ==
        std::string("onced mark 1\0\0\0\n\x08\x07\x06\x05\x04\x03\x02\x01", 24));
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
