#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace onced::tools {

// What waits for a reader at most; beyond that, lines are dropped.
inline constexpr std::size_t line_queue_bytes_max = std::size_t{256} * 1024;

// How long an end waits for a reader that does not read.
inline constexpr std::chrono::milliseconds last_words_patience{100};

// Writes as much of the text as a pipe, terminal or socket takes, and waits for room for so long altogether at most.
// Returns the bytes written. A file takes everything at once.
std::size_t write_within(int descriptor, std::string_view text, std::chrono::milliseconds patience) noexcept;

// `write_within` to stderr, for a last word: a reader that does not read holds nobody up.
void tell_on_stderr(std::string_view text) noexcept;

// Lines on their way to a descriptor that nobody may read (a full pipe, a stopped terminal). A thread of its own writes
// them, so nobody who puts one waits. The descriptor must stay open until the end of the process: where the lines
// cannot be written in time the thread is left behind, and ends with the process.
class LineQueue {
public:
  // `on_failure` is called once, by the thread, with the errno of a write that failed; nothing is written after that.
  explicit LineQueue(int descriptor, std::function<void(int)> on_failure = {});
  ~LineQueue(); // closes it
  LineQueue(const LineQueue &) = delete;
  LineQueue &operator=(const LineQueue &) = delete;

  // False: it is full, and the line is dropped. Any thread.
  [[nodiscard]] bool put(std::string_view line);

  // Takes no more, and waits at most so long until all is written. False: it is not. One thread.
  bool close(std::chrono::milliseconds patience = last_words_patience) noexcept;

private:
  struct State;
  std::shared_ptr<State> state_; // the thread's too
};

} // namespace onced::tools
