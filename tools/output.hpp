#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "exit_codes.hpp"
#include "job/json_value.hpp"
#include "onced/error.hpp"

namespace onced::tools {

// Standard output, or another descriptor: JSON, one object a line. Any thread. Lines wait until `flush` or until there
// are many. After the first failure nothing more is written, and it is kept.
class Output {
public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}

  void line(const Json &object);
  void text(std::string_view text);
  // Errors: `store_unavailable`, the failure that stopped the output.
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] bool failed() const;

private:
  void append(std::string_view text);
  void write_all();

  int descriptor_;
  mutable std::mutex mutex_;
  std::string waiting_;
  int failure_ = 0; // errno
};

// Flushes it. The code, where that succeeds; else what the command exits with instead.
[[nodiscard]] ExitCode finish(Output &output, ExitCode code);

} // namespace onced::tools
