#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "onced/fencing_token.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "runner/runner_context.hpp"

namespace onced::runner {

// One attempt at a job. What is borrowed must outlive it.
struct Attempt {
  const QueuedType &type;
  const Job &job;
  FencingToken token;
  std::string fencing_token;       // the same, as text
  std::string idempotency_key;     // of the job's key
  std::uint32_t number = 1;        // the receive that it is
  std::filesystem::path lock_file; // of the job; for commands only
};

// How a handler, or its reconcile, has ended.
struct AttemptEnd {
  enum class Kind : std::uint8_t {
    done,        // with a result
    refused,     // for good
    nothing,     // nothing was done, as it says
    unknown,     // nobody knows what was done
    not_started, // it could not be started
    locked,      // it was not started, as a former child of the job still runs
  };
  Kind kind = Kind::unknown;
  Done done = {};         // its result in canonical form
  std::string error = {}; // else why
};

// Runs handlers, as the functions or commands that they are. One thread at a time.
class AttemptRunner {
public:
  // `on_started` is called once a handler runs or is about to: from then on it may have an effect. All must outlive it.
  AttemptRunner(RunnerContext &context, std::function<void()> on_started)
      : context_(context), on_started_(std::move(on_started)) {}

  [[nodiscard]] AttemptEnd call(const Attempt &attempt);
  // `done`: the effect took place, with that result. `nothing`: it did not.
  [[nodiscard]] AttemptEnd reconcile(const Attempt &attempt);

private:
  template <class Returned>
  [[nodiscard]] Returned run_function(const std::function<Returned(const QueuedCall &)> &function,
                                      const Attempt &attempt);
  [[nodiscard]] tl::expected<Bytes, std::string> input_of(BytesView payload);
  template <class Read>
  [[nodiscard]] AttemptEnd run_command(const HandlerCommand &command, const Attempt &attempt, Read read);
  [[nodiscard]] AttemptEnd checked(Done done);
  [[nodiscard]] AttemptEnd end_of(ReconcileResult result);

  RunnerContext &context_;
  std::function<void()> on_started_;
  JobParser parser_;
};

} // namespace onced::runner
