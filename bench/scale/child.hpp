#pragma once

#include "base/child_process.hpp"
#include "child_tasks.hpp"

namespace onced::bench::scale {

// This program again, in another process, for one task. It dies with the thread that started it.
class Child {
public:
  Child(const Setting &setting, const ChildTask &task);

  // Waits for it. Throws std::runtime_error where it ends without one, or a signal waits.
  [[nodiscard]] Row answer();
  // Waits for its end in order. Throws std::runtime_error where it is another.
  void wait();
  // By SIGKILL. Throws std::runtime_error where it had ended before.
  void kill();

private:
  ChildProcess process_;
  ChildOutput output_;
};

} // namespace onced::bench::scale
