#pragma once

#include <exception>
#include <thread>

namespace onced::testing {

// A thread that is joined at the end, and whose exception is not lost.
class Task {
public:
  template <class Work>
  explicit Task(Work work)
      : thread_([this, work] {
          try {
            work();
          } catch (...) {
            failure_ = std::current_exception();
          }
        }) {}
  ~Task() {
    if (thread_.joinable()) thread_.join();
  }
  Task(const Task &) = delete;
  Task &operator=(const Task &) = delete;

  // Waits for its end, and throws what it threw.
  void finish() {
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

private:
  std::exception_ptr failure_; // before the thread, which writes it
  std::thread thread_;
};

} // namespace onced::testing
