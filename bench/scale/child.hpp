#pragma once

#include <cstdio>

#include "child_tasks.hpp"

namespace onced::bench::scale {

// This program again, in another process, for one task. It dies with the thread that started it.
class Child {
public:
  Child(const Setting &setting, const ChildTask &task);
  ~Child();
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  // Waits for it. Throws std::runtime_error where it ends without one, or a signal waits.
  [[nodiscard]] Row answer() const;
  // Waits for its end in order. Throws std::runtime_error where it is another.
  void wait();
  // By SIGKILL. Throws std::runtime_error where it had ended before.
  void kill();

private:
  int process_ = -1;
  std::FILE *output_ = nullptr;
};

// In the child, first: to die with its parent, the process `parent`.
void die_with(int parent);

} // namespace onced::bench::scale
