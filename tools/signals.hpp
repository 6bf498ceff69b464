#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace onced::tools {

// Something to wait for together with other descriptors: it becomes readable once requested, and stays so.
class StopEvent {
public:
  StopEvent(); // throws std::system_error where the process is out of descriptors
  ~StopEvent();
  StopEvent(const StopEvent &) = delete;
  StopEvent &operator=(const StopEvent &) = delete;

  void request() noexcept; // any thread
  [[nodiscard]] bool requested() const noexcept { return requested_.load(); }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

private:
  int descriptor_;
  std::atomic<bool> requested_{false};
};

// SIGINT and SIGTERM while it lives: the first calls `on_first` on a thread of its own; the second ends the process at
// once, with 128 and its number, which is as safe as a crash. Made before any other thread, which inherit the blocked
// signals.
class SignalWatch {
public:
  explicit SignalWatch(std::function<void(int)> on_first);
  ~SignalWatch();
  SignalWatch(const SignalWatch &) = delete;
  SignalWatch &operator=(const SignalWatch &) = delete;

private:
  void run();

  std::function<void(int)> on_first_;
  sigset_t before_{};
  int signals_;
  StopEvent stop_;
  std::thread thread_;
};

} // namespace onced::tools
