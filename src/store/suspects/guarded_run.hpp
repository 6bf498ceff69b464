#pragma once

#include "store/suspects/suspects.hpp"
#include "store/verdict.hpp"

namespace onced::store {

// Runs inline handlers so that it is known, should one end the process, which job it was for. One thread at a time.
class GuardedRun {
public:
  explicit GuardedRun(Suspects &suspects) : suspects_(suspects), slot_(suspects.take_slot()) {}

  // As verdict_of_handler. The handler of a suspect runs while no other does; where it has ended the process too often
  // it does not run: `failed`.
  [[nodiscard]] Verdict verdict(const Key &key, const Job &job, const Handlers &handlers, JobParser &parser);

private:
  [[nodiscard]] Verdict run(const Key &key, bool alone, const Job &job, const Handlers &handlers, JobParser &parser);

  Suspects &suspects_;
  RunningSlot slot_;
};

} // namespace onced::store
