#include "exit_codes.hpp"

#include "line_queue.hpp"

#include "output.hpp"

namespace onced::tools {

ExitCode report(const Error &error) {
  tell_on_stderr("onced: " + visible(describe(error)) + "\n");
  return exit_code_of(error.code);
}

} // namespace onced::tools
