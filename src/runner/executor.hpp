#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/attempt.hpp"
#include "runner/runner_context.hpp"
#include "store/job_queue.hpp"

namespace onced::runner {

// The type that each executor serves: one executor for each lease that there may be at once. The names live as long as
// the handlers.
[[nodiscard]] std::vector<std::string_view> executor_types(const Handlers &handlers);

// Errors: `usage`, they are more than limits::handler_threads_max.
[[nodiscard]] Result<void> check_executors(const Handlers &handlers);

// Handles one queued job after another: counts the receive, runs the handler, and writes how that ended. One thread.
class Executor {
public:
  // Of the jobs of this type, whose name must outlive it.
  Executor(RunnerContext &context, std::string_view type) : context_(context), type_(type) {}

  // Until the schedule gives no more, and the job in hand has ended.
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
  void count_late(const Attempt &attempt);
  [[nodiscard]] std::optional<store::QueueSettled> change_store(const Change &change, store::QueueSettled if_written);

  RunnerContext &context_;
  std::string_view type_;
};

} // namespace onced::runner
