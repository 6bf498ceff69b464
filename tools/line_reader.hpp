#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "signals.hpp"

namespace onced::tools {

// A file descriptor of its own, or standard input.
class InputFile {
public:
  // "-" is standard input. Errors: `not_found`.
  [[nodiscard]] static Result<InputFile> open(const std::string &path);

  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;
  ~InputFile();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::string &name() const { return name_; }

private:
  InputFile(int descriptor, bool owned, std::string name)
      : descriptor_(descriptor), owned_(owned), name_(std::move(name)) {}

  int descriptor_;
  bool owned_;
  std::string name_;
};

// Why reading ended.
enum class ReadEnd : std::uint8_t { line, too_long, end, interrupted };

// Reads lines of bounded length; waits for input no longer than until the stop event or the deadline.
class LineReader {
public:
  LineReader(const InputFile &file, std::size_t bytes_max, const StopEvent &stop, MonotonicTime deadline)
      : file_(file), bytes_max_(bytes_max), stop_(stop), deadline_(deadline) {}

  // `line`: the next one, without its end, is in `text` until the next call. `too_long`: it was passed over.
  // Errors: `store_unavailable`, the input cannot be read.
  [[nodiscard]] Result<ReadEnd> next(std::string_view &text);

  // Whether `next` has a line in hand, so that it neither reads nor waits.
  [[nodiscard]] bool has_line() const;

  // Of the line last read, from 1.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  // Everything up to the end, at most `bytes_max` and one byte more. Instead of `next`, not beside it.
  [[nodiscard]] Result<ReadEnd> rest(std::string &bytes);

private:
  enum class Filled : std::uint8_t { more, end, interrupted };
  [[nodiscard]] Result<Filled> fill();
  ReadEnd take(std::size_t length, std::size_t with_end, std::string_view &text);

  const InputFile &file_;
  std::size_t bytes_max_;
  const StopEvent &stop_;
  MonotonicTime deadline_;
  std::string buffer_;
  std::size_t begin_ = 0;   // of what is not yet taken
  std::size_t scanned_ = 0; // no line ends between begin_ and here
  bool ended_ = false;
  bool skipping_ = false; // inside a line that is too long
  std::uint64_t number_ = 0;
};

} // namespace onced::tools
