#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runner/attempt.hpp"
#include "runner/runner_context.hpp"
#include "store/job_queue.hpp"

namespace onced::runner {

// Handles one queued job after another: counts the receive, runs the handler, and writes how that ended. One thread.
class Executor {
public:
  // Of the jobs of this type, whose name must outlive it.
  Executor(const RunnerContext &context, std::string_view type) : context_(context), type_(type) {}

  // Until the board gives no more.
  void run();

private:
  using Change = std::function<Result<store::QueueSettled>(store::JobQueue &queue)>;

  void handle(const Leases::HandOver &hand_over);
  [[nodiscard]] bool former_child_runs(const std::filesystem::path &lock_file);
  [[nodiscard]] std::optional<store::Received> receive(const Leases::HandOver &hand_over, const QueuedType &type);
  void take_back(const Leases::HandOver &hand_over, Leases::Obstacle obstacle, std::string_view why);

  [[nodiscard]] std::optional<store::QueueEnding> attempt(const Leases::HandOver &hand_over, const Attempt &attempt,
                                                          const store::QueueRow &row);
  void write(const Leases::HandOver &hand_over, const Attempt &attempt, const store::QueueEnding &ending);
  void finish(const Leases::HandOver &hand_over, const Attempt &attempt, const store::QueueEnding &ending,
              store::QueueSettled settled);
  void tell_late(const Attempt &attempt);
  [[nodiscard]] std::optional<store::QueueSettled> change_store(const Change &change, store::QueueSettled if_written);

  RunnerContext context_;
  std::string_view type_;
};

} // namespace onced::runner
