#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include <unistd.h>

#include "support/process.hpp"
#include "support/process_figures.hpp"

namespace onced::testing {

// A disk that does not answer, as a running process sees it: while this lives, none of its syncs returns. strace(1)
// holds each back, and lets all of them go at its end.
class StalledStore {
public:
  explicit StalledStore(pid_t process) {
    constexpr const char *strace = "/usr/bin/strace";
    if (::access(strace, X_OK) != 0) return;
    const std::string trace = std::string("exec ") + strace +
                              " -f -qq -o /dev/null -e trace=fdatasync,fsync "
                              "-e inject=fdatasync,fsync:delay_enter=3600s -p " +
                              std::to_string(process);
    strace_ = std::make_unique<Process>(Process::Options{.arguments = {}, .wrapper = {"/bin/sh", "-c", trace}});
    const bool attached = eventually([&] { return !strace_->is_running() || holds_every_thread(process); });
    if (!attached || !strace_->is_running()) strace_.reset();
  }

  // False: there is no strace, or it may not trace.
  [[nodiscard]] bool is_stalled() const { return strace_ != nullptr; }
  void release() {
    strace_->signal(SIGTERM);
    static_cast<void>(strace_->wait());
    strace_.reset();
  }

private:
  [[nodiscard]] bool holds_every_thread(pid_t process) const {
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task");
    return std::all_of(begin(threads), end(threads), [&](const auto &thread) {
      return status_figure(std::stoi(thread.path().filename()), "TracerPid") == static_cast<std::size_t>(strace_->id());
    });
  }

  std::unique_ptr<Process> strace_;
};

} // namespace onced::testing
