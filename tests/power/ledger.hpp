#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>

#include "power/load.hpp"
#include "power/task.hpp"
#include "support/process.hpp"

namespace onced::testing {

// What was promised so far, kept where no power is cut: acknowledged jobs, or jobs that an outbox has accepted. Any
// thread.
class Ledger {
public:
  void add(const std::string &name);
  // Nobody will add anything any more.
  void close();

  // Waits for so many promises, for as long as somebody makes them; throws where none comes for `patience`.
  void wait_for(std::size_t promises);
  [[nodiscard]] std::set<std::string> names() const;

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> names_;
  bool closed_ = false;
};

// `onced send`, whose lines go into a ledger as they come, each held against the fate that its job must have.
class SendRun {
public:
  SendRun(const Arguments &arguments, const std::string &input, const Fates &fates, Ledger &ledger);
  ~SendRun() { process_.signal(SIGKILL); }
  SendRun(const SendRun &) = delete;
  SendRun &operator=(const SendRun &) = delete;

  // Waits until it has ended by itself and every line is in the ledger. Throws where a line was another one than it
  // must be.
  [[nodiscard]] ExitStatus finish();
  // The same after a kill -9.
  void end();

private:
  Process process_;
  Task reader_;
};

} // namespace onced::testing
