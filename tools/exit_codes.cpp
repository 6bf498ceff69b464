#include "exit_codes.hpp"

#include <fmt/core.h>

#include "output.hpp"

namespace onced::tools {

ExitCode report(const Error &error) {
  fmt::print(stderr, "onced: {}\n", visible(describe(error)));
  return exit_code_of(error.code);
}

} // namespace onced::tools
