#include "store/suspects/guarded_run.hpp"

namespace onced::store {
namespace {

// The job is in the slot as long as this lives.
class Noted {
public:
  Noted(RunningSlot &slot, BytesView key, bool alone) : slot_(slot) { slot_.enter(key, alone); }
  ~Noted() { slot_.leave(); }
  Noted(const Noted &) = delete;
  Noted &operator=(const Noted &) = delete;

private:
  RunningSlot &slot_;
};

} // namespace

Verdict GuardedRun::verdict(const Key &key, const Job &job, const Handlers &handlers, JobParser &parser) {
  if (suspects_.none()) return run(key, false, job, handlers, parser);
  const auto count = handlers.has_inline(job.type) ? suspects_.find(key.bytes) : std::nullopt;
  if (!count) {
    const auto lock = suspects_.beside_others();
    return run(key, false, job, handlers, parser);
  }
  if (count->crashes >= limits::max_receive_count) return verdict_of_crashes(count->crashes);
  const auto lock = suspects_.alone();
  Verdict verdict = run(key, true, job, handlers, parser);
  verdict.suspicion = Suspicion::cleared;
  return verdict;
}

Verdict GuardedRun::run(const Key &key, bool alone, const Job &job, const Handlers &handlers, JobParser &parser) {
  const Noted noted(slot_, key.bytes, alone);
  return verdict_of_handler(job, handlers, parser);
}

} // namespace onced::store
