#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json_value.hpp"
#include "exit_codes.hpp"
#include "onced/error.hpp"

namespace onced::tools {

// `text` as a terminal may be given it: what is no UTF-8 is U+FFFD, and each character that moves the cursor, starts an
// escape sequence, ends a line or turns the direction of writing is its \uXXXX: C0, DEL, C1, U+061C, U+200E, U+200F,
// U+2028 to U+202E and U+2066 to U+2069. In the text of a JSON value it is the same value: such characters stand in
// strings only.
[[nodiscard]] std::string visible(std::string_view text);
inline constexpr std::chrono::milliseconds output_patience{1000};

// Standard output, or another descriptor: JSON, one object a line. Any thread. Lines wait until `flush` or until there
// are many. After the first failure nothing more is written, and it is kept. A reader that does not read holds up who
// writes, but not the end: see `give_up_after`.
class Output {
public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  // Any value, `visible`.
  void line(const Json &object);
  // As it is: for words of our own.
  void text(std::string_view text);
  // Errors: `store_unavailable`, the failure that stopped the output.
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] bool failed() const;

  // Once this descriptor is readable (of a StopEvent; it must stay open), an output that takes nothing for
  // `output_patience` has failed. Before any other thread has it.
  void give_up_after(int stop) { stop_ = stop; }

private:
  void append(std::string_view text);
  void write_all();
  [[nodiscard]] bool wait_for_room() const;

  int descriptor_;
  int stop_ = -1;
  mutable std::mutex mutex_;
  std::string waiting_;
  int failure_ = 0; // errno
};

// Flushes it. The code, where that succeeds; else what the command exits with instead.
[[nodiscard]] ExitCode finish(Output &output, ExitCode code);

} // namespace onced::tools
