#pragma once

#include "base/child_process.hpp"

namespace onced::testing {

// Does this in a copy of this process, which then ends with exit code 0, and waits for its end.
template <class Work> ProcessEnd do_in_copy(const Work &work) {
  auto copy = ChildProcess::start_copy([&work] {
    work();
    return 0;
  });
  return copy.value().wait();
}

} // namespace onced::testing
