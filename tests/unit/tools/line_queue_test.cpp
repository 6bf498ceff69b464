// Verifies the queue of lines to a pipe: nobody waits, lines are whole or dropped, and an end waits for a moment.
#include "line_queue.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace onced::tools;

namespace {

struct FedPipe {
  FedPipe() {
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
  }
  ~FedPipe() {
    ::close(ends[0]);
    if (writing_is_ours) ::close(ends[1]);
  }
  FedPipe(const FedPipe &) = delete;
  FedPipe &operator=(const FedPipe &) = delete;

  // Until so many bytes have come.
  [[nodiscard]] std::string read(std::size_t bytes) const {
    std::string text;
    std::array<char, 4096> buffer{};
    while (text.size() < bytes) {
      const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  std::array<int, 2> ends{};
  bool writing_is_ours = true;
};

const std::string line = std::string(99, 'a') + "\n";

} // namespace

TEST_CASE("lines arrive in their order and the end waits for them") {
  const FedPipe pipe;
  LineQueue lines(pipe.ends[1]);
  CHECK(lines.put("one\n"));
  CHECK(lines.put("two\n"));
  CHECK(lines.close());
  CHECK(pipe.read(8) == "one\ntwo\n");
  CHECK_FALSE(lines.put("three\n"));
}

TEST_CASE("a pipe that nobody reads fills the queue and then lines are dropped and nobody waits") {
  FedPipe pipe;
  pipe.writing_is_ours = false; // its thread is left behind with it
  std::size_t taken = 0;
  std::size_t left = 0;
  {
    LineQueue lines(pipe.ends[1]);
    while (lines.put(line))
      ++taken;
    CHECK(taken * line.size() <= 2 * line_queue_bytes_max + 4096);
    // What is read makes room, and is whole.
    const std::string first = pipe.read(line_queue_bytes_max / 2);
    CHECK(first.substr(0, line.size()) == line);
    left = (taken + 1) * line.size() - first.size();
    while (!lines.put(line))
      std::this_thread::yield();
    CHECK_FALSE(lines.close(std::chrono::milliseconds(1)));
  }
  CHECK(pipe.read(left).back() == '\n'); // by the thread that was left
}

TEST_CASE("a write that fails is told once and what follows is dropped") {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  std::atomic<int> failures{0};
  std::atomic<int> failure{0};
  LineQueue lines(full, [&](int error) {
    failure = error;
    ++failures;
  });
  CHECK(lines.put(line));
  while (failures == 0)
    std::this_thread::yield();
  static_cast<void>(lines.put(line));
  CHECK_FALSE(lines.close());
  CHECK(failures == 1);
  CHECK(failure == ENOSPC);
  ::close(full);
}

TEST_CASE("a text is written in part where a pipe takes no more of it") {
  const FedPipe pipe;
  const std::string text(10'000, 'b');
  const std::size_t written = write_within(pipe.ends[1], text, std::chrono::milliseconds(0));
  CHECK(written == 4096);
  CHECK(write_within(pipe.ends[1], text, std::chrono::milliseconds(1)) == 0);
  CHECK(pipe.read(written).size() == written);
}
