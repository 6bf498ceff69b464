// The files `durable.mark` and `outbox.mark` by themselves. What an opening makes of them is in opening_test.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#include "base/directory_kind.hpp"
#include "base/scratch_directory.hpp"
#include "onced/digest.hpp"
#include "rocksdb/durable_mark.hpp"
#include "support/document.hpp"
#include "support/file_content.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::rocks;
using namespace onced::testing;

namespace {

MarkContent read_again(const ScratchDirectory &directory) {
  const auto mark = DurableMark::open(directory.path(), store_mark_name, true);
  REQUIRE(mark.has_value());
  return mark->content();
}

Result<DurableMark> create(const ScratchDirectory &directory, MarkContent content = {}) {
  return DurableMark::create(directory.path(), store_mark_name, std::move(content));
}

StoreIdentity identity_of(std::uint8_t fill) {
  StoreIdentity identity;
  identity.bytes.fill(fill);
  return identity;
}

// The mark of the worked example in docs/storage.md.
MarkContent example() {
  return {.identity = identity_of(0x5E),
          .boot = 3,
          .newest = {.number = 17, .first = 101, .last = 0},
          .boot_log = 14,
          .sequence = 130,
          .complete = {{.number = 12, .first = 4, .last = 100}},
          .older = false,
          .older_logs = {}};
}

} // namespace

TEST_CASE("the mark is as the page on storage says") {
  const ScratchDirectory directory;
  REQUIRE(create(directory, example()).has_value());
  const std::string content = content_of(directory.path() / store_mark_name);
  REQUIRE(content.size() == 6656);
  const auto is_example = [&](std::size_t at, const std::string &name) {
    const std::string expected = document_example("storage.md", name);
    CHECK(to_hex(content.substr(at, expected.size())) == to_hex(expected));
    std::string rest = content.substr(at + expected.size());
    rest.resize(rest.find_first_not_of('\0') == std::string::npos ? rest.size() : rest.find_first_not_of('\0'));
    CHECK(rest.size() >= 8);
  };
  is_example(1536, "mark state");
  is_example(2048, "mark sequence");
  is_example(2560, "mark log");
}

TEST_CASE("to a program of before the mark is an empty one of its own") {
  const ScratchDirectory directory;
  REQUIRE(create(directory, example()).has_value());
  const std::string content = content_of(directory.path() / store_mark_name);
  CHECK(content.substr(0, 16) == std::string("onced mark 2\0\0\0\n", 16));
  CHECK(content.substr(16, 1536 - 16).find_first_not_of('\0') == std::string::npos);
}

TEST_CASE("a mark that is read again says what it said") {
  const ScratchDirectory directory;
  auto mark = create(directory, example());
  REQUIRE(mark.has_value());
  mark->advance(140);
  mark->advance(139);
  const MarkContent read = read_again(directory);
  CHECK(read.identity == identity_of(0x5E));
  CHECK(read.boot == 3);
  CHECK(read.newest == LogSpan{.number = 17, .first = 101, .last = 0});
  CHECK(read.sequence == 140);
  CHECK(read.complete == std::vector<LogSpan>{{.number = 12, .first = 4, .last = 100}});
  CHECK(!read.older);
  CHECK(mark->adopt(identity_of(1)).has_value());
  CHECK(read_again(directory).identity == identity_of(1));
  CHECK(mark->replace({}).has_value());
  CHECK(read_again(directory).sequence == 0);
  CHECK(read_again(directory).complete.empty());
}

TEST_CASE("a log that is followed by another is complete as far as it is known to be synced") {
  const ScratchDirectory directory;
  auto mark = create(directory, example());
  REQUIRE(mark.has_value());
  mark->begin_log(18, 151);
  CHECK(read_again(directory).newest == LogSpan{.number = 18, .first = 151, .last = 0});
  CHECK(read_again(directory).complete.back() == LogSpan{.number = 17, .first = 101, .last = 130});
  mark->begin_log(18, 500); // it is known
  mark->begin_log(19, 200);
  CHECK(read_again(directory).complete.size() == 2); // nothing of it is
  mark->advance(145);
  CHECK(read_again(directory).complete.at(1) == LogSpan{.number = 17, .first = 101, .last = 145});
  mark->advance(220); // and so all that is below
  CHECK(read_again(directory).complete.at(1) == LogSpan{.number = 17, .first = 101, .last = 150});
  CHECK(read_again(directory).complete.at(2) == LogSpan{.number = 18, .first = 151, .last = 199});
}

TEST_CASE("the newest complete logs are remembered") {
  const ScratchDirectory directory;
  auto mark = create(directory, {.identity = {},
                                 .boot = 1,
                                 .newest = {.number = 1, .first = 1, .last = 0},
                                 .boot_log = 1,
                                 .sequence = 0,
                                 .complete = {},
                                 .older = false,
                                 .older_logs = {}});
  REQUIRE(mark.has_value());
  for (std::uint64_t number = 2; number <= 200; ++number) {
    mark->advance((number - 1) * 10);
    mark->begin_log(number, (number - 1) * 10 + 1);
  }
  auto logs = read_again(directory).complete;
  REQUIRE(logs.size() == DurableMark::logs_max);
  std::sort(logs.begin(), logs.end(),
            [](const LogSpan &left, const LogSpan &right) { return left.number < right.number; });
  CHECK(logs.front() == LogSpan{.number = 72, .first = 711, .last = 720});
  CHECK(logs.back() == LogSpan{.number = 199, .first = 1981, .last = 1990});
}

TEST_CASE("marks of older forms are read") {
  const ScratchDirectory directory;
  const auto path = directory.path() / store_mark_name;
  const std::string first("onced mark 1\0\0\0\n\x07\0\0\0\0\0\0\0", 24);
  std::ofstream(path, std::ios::binary) << first;
  CHECK(read_again(directory).sequence == 7);
  CHECK(read_again(directory).older);
  std::string second("onced mark 2\0\0\0\n\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0B\x0A\0\0\0\0\0\0\x0D\x0C\0\0\0\0\0\0",
                     48);
  second.resize(1056);
  std::ofstream(path, std::ios::binary) << second;
  CHECK(read_again(directory).sequence == 8);
  CHECK(read_again(directory).older);
  CHECK(read_again(directory).older_logs == std::vector<LogFile>{{.number = 0x0A0B, .bytes = 0x0C0D}});
  CHECK(content_of(path) == second);
}

TEST_CASE("threads that raise it together leave the highest") {
  const ScratchDirectory directory;
  auto mark = create(directory);
  REQUIRE(mark.has_value());
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (std::uint64_t step = 0; step < 1'000; ++step) {
        mark->advance(step * 4 + number);
        if (step % 100 == 0) mark->begin_log(step * 4 + number + 1, step * 4 + number + 1);
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  CHECK(read_again(directory).sequence == 3'999);
}

TEST_CASE("a file that is no mark is refused and a missing one not found") {
  const ScratchDirectory directory;
  const auto absent = DurableMark::open(directory.path(), store_mark_name, false);
  REQUIRE(!absent.has_value());
  CHECK(absent.error().code == ErrorCode::not_found);
  for (const std::string &content :
       {std::string(), std::string("onced mark 1\0\0\0\n1234567", 23), std::string(24, 'x'), std::string(6656, '\0')}) {
    std::ofstream(directory.path() / store_mark_name, std::ios::binary | std::ios::trunc) << content;
    const auto refused = DurableMark::open(directory.path(), store_mark_name, false);
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::corrupt);
    CHECK(refused.error().concerns == (directory.path() / store_mark_name).string());
  }
}

TEST_CASE("a flipped bit in a record of the mark and a mark of any other length are refused") {
  const ScratchDirectory directory;
  REQUIRE(create(directory, example()).has_value());
  const auto path = directory.path() / store_mark_name;
  const std::string whole = content_of(path);
  const auto code_of = [&](const std::string &content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    const auto read = DurableMark::open(directory.path(), store_mark_name, true);
    return read.has_value() ? std::optional<ErrorCode>() : read.error().code;
  };
  for (const auto &[begin, bytes] : {std::pair{1536U, 72U}, {2048U, 16U}, {2560U, 64U}}) {
    for (std::size_t at = begin; at < begin + bytes; ++at) {
      CAPTURE(at);
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      CHECK(code_of(flipped) == ErrorCode::corrupt);
    }
  }
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    if (size == 1056) continue;
    CHECK(code_of(whole.substr(0, size)) == ErrorCode::corrupt);
  }
  CHECK(code_of(whole + "x") == ErrorCode::corrupt);
  CHECK(code_of(whole) == std::nullopt);
}

TEST_CASE("an unfinished draft of a mark is no mark and does not stand in the way") {
  const ScratchDirectory directory;
  std::ofstream(directory.path() / "durable.mark.new") << "half";
  CHECK(!DurableMark::open(directory.path(), store_mark_name, false).has_value());
  CHECK(create(directory).has_value());
  CHECK(read_again(directory).sequence == 0);
  CHECK(!std::filesystem::exists(directory.path() / "durable.mark.new"));
}
