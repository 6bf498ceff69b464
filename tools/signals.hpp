#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace onced::tools {

// Undoes what a parent may have left to this process: ignored signals and a signal mask. A terminal's signals (SIGHUP,
// SIGINT, SIGQUIT and those of job control) stay ignored, as nohup and shells mean that. A reader that goes away and a
// file that reaches its size limit become failed writes, which are reported. To be called first, by the only thread.
void take_over_signals() noexcept;

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

// Signals while it lives, on a thread of its own:
//
// - the first SIGINT or SIGTERM calls `on_stop` with its number;
// - a further SIGTERM changes nothing, as wrappers (timeout) send it twice;
// - SIGQUIT, and a SIGINT after `on_stop`, end the process at once with 128 and the number: as safe as a crash;
// - SIGHUP calls `on_hangup`. Where that is empty SIGHUP is one more that asks to stop, unless it was ignored.
//
// Made before any other thread, which inherit the blocked signals. The functions must not wait for anybody.
class SignalWatch {
public:
  explicit SignalWatch(std::function<void(int)> on_stop, std::function<void()> on_hangup = {});
  ~SignalWatch();
  SignalWatch(const SignalWatch &) = delete;
  SignalWatch &operator=(const SignalWatch &) = delete;

private:
  void run();

  std::function<void(int)> on_stop_;
  std::function<void()> on_hangup_;
  sigset_t before_{};
  int signals_;
  StopEvent stop_;
  std::thread thread_;
};

} // namespace onced::tools
