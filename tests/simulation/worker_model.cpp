#include "worker_model.hpp"

#include <utility>

#include "rules.hpp"

namespace simulation {

using onced::Outcome;
using onced::testing::EngineCall;
using onced::testing::EngineFault;

void WorkerModel::begin() {
  ready_ = store_.open();
  must(ready_, rules::settles);
  queue_.begin_life(store_.boot());
}

void WorkerModel::on_hello(const Event &event) {
  if (!ready_) return;
  knows_[event.sender] = true;
  greet(event.sender);
}

// A batch fills from what arrives until it is committed.
void WorkerModel::on_delivery(const Event &event) {
  if (!ready_) return context_.trace("  lost: no worker");
  ++context_.tally.deliveries;
  if (context_.now < busy_until_ && !context_.calm()) return reply(event.job, {});
  batch_.push_back(event.job);
  if (batch_.size() == 1)
    context_.schedule_in(context_.chance.up_to(context_.plan.commit_max), {.kind = EventKind::commit, .life = life_});
  if (context_.mutated(Mutation::early_acknowledgement)) reply(event.job, {Outcome::stored, 1});
}

void WorkerModel::on_commit(const Event &event) {
  if (event.life != life_) return context_.trace("  forgotten: of an earlier life");
  const auto batch = std::exchange(batch_, {});
  const bool has_rival = context_.plan.visible_early && context_.jobs[batch.front()].kind == JobKind::pure;
  if (has_rival && !context_.calm() && context_.chance.happens(context_.plan.rival_percent))
    store_.commit_elsewhere(batch.front());
  std::optional<std::vector<StoreNode::Answer>> answers;
  const auto commit = [&] {
    answers = store_.commit(batch);
    return answers.has_value();
  };
  if (write(commit, true) != Write::done) return;
  for (std::size_t at = 0; at < batch.size(); ++at) {
    if ((*answers)[at].is_new_in_queue) queue_.add_new(context_.jobs[batch[at]].key);
    reply(batch[at], (*answers)[at].verdict);
  }
}

// While the store is not open, the queue's writes wait for it.
void WorkerModel::on_queue_write(const Event &event) {
  if (event.life != queue_.life()) return context_.trace("  forgotten: of an earlier life");
  if (!ready_) return queue_.hold(event);
  queue_.before_write(event);
  std::optional<bool> is_written;
  const auto operate = [&] {
    is_written = queue_.write(event);
    return is_written.has_value();
  };
  const bool is_late = event.kind == EventKind::receive && context_.mutated(Mutation::late_receive);
  const Write end = write(operate, !is_late);
  if (end == Write::unknown) queue_.on_unknown(event);
  if (end != Write::done) return;
  if (const auto verdict = queue_.on_written(event, *is_written)) reply(event.job, *verdict);
}

template <class Operation> WorkerModel::Write WorkerModel::write(const Operation &operate, bool may_fail) {
  const bool crashes = arm_crash();
  if (!crashes && may_fail) arm_failure();
  const bool succeeds = operate();
  store_.disarm();
  if (crashes) on_crash();
  if (!crashes && !succeeds) fail_write();
  if (crashes) return Write::crashed;
  return succeeds ? Write::done : Write::unknown;
}

// During a call of the engine, or after all of them.
bool WorkerModel::arm_crash() {
  Chance &chance = context_.chance;
  if (context_.calm() || !chance.happens(context_.plan.crash_percent)) return false;
  constexpr std::array<EngineCall, 5> calls{EngineCall::read, EngineCall::lock, EngineCall::claim, EngineCall::put,
                                            EngineCall::commit};
  const EngineCall call = chance.happens(50) ? EngineCall::commit : calls[chance.below(calls.size())];
  const bool is_after = call == EngineCall::commit && chance.happens(50);
  store_.arm(call, is_after ? EngineFault::crash_written : EngineFault::crash);
  return true;
}

void WorkerModel::arm_failure() {
  Chance &chance = context_.chance;
  if (context_.calm() || !chance.happens(context_.plan.write_failure_percent)) return;
  constexpr std::array<EngineCall, 6> calls{EngineCall::read, EngineCall::lock,  EngineCall::claim,
                                            EngineCall::put,  EngineCall::erase, EngineCall::confirm};
  constexpr std::array<EngineFault, 4> faults{EngineFault::unavailable, EngineFault::unknown_written,
                                              EngineFault::unknown_lost, EngineFault::unknown_visible};
  if (chance.happens(20)) return store_.arm(calls[chance.below(calls.size())], EngineFault::unavailable);
  store_.arm(EngineCall::commit, faults[chance.below(faults.size())]);
}

void WorkerModel::on_crash() {
  context_.trace("  worker: crashes");
  if (ready_) ++context_.tally.worker_crashes;
  ready_ = false;
  end_life();
  store_.crash();
  queue_.on_crash();
  Event start{.kind = EventKind::worker_start, .life = life_};
  context_.schedule_in(context_.chance.up_to(pause_max), start);
}

void WorkerModel::end_life() {
  ++life_;
  batch_.clear();
}

// False: not yet, and it is tried again.
bool WorkerModel::open_store() {
  Chance &chance = context_.chance;
  if (!context_.calm() && chance.happens(context_.plan.write_failure_percent))
    store_.arm(EngineCall::boot, EngineFault::unavailable);
  ready_ = store_.open();
  store_.disarm();
  return ready_;
}

void WorkerModel::on_start(const Event &event) {
  if (event.life != life_) return;
  if (!open_store()) return context_.schedule_in(context_.chance.up_to(pause_max), event);
  knows_ = {};
  queue_.begin_life(store_.boot());
  for (std::size_t sender = 0; sender < context_.plan.senders; ++sender) {
    const Event connect{.kind = EventKind::connect, .sender = static_cast<std::uint8_t>(sender)};
    context_.schedule_in(context_.chance.up_to(std::chrono::milliseconds(500)), connect);
  }
}

void WorkerModel::on_reopen(const Event &event) {
  if (event.life != life_) return;
  if (!open_store()) return context_.schedule_in(context_.chance.up_to(pause_max), event);
  queue_.on_reopen();
  for (std::size_t sender = 0; sender < knows_.size(); ++sender)
    if (knows_[sender]) greet(sender);
}

// Whether the row is there is unknown: nothing is said of it, and of what else was in hand.
void WorkerModel::fail_write() {
  context_.trace("  worker: write fails");
  ++context_.tally.write_failures;
  ready_ = false;
  end_life();
  store_.close();
  const Event reopen{.kind = EventKind::store_reopen, .life = life_};
  context_.schedule_in(context_.chance.up_to(pause_max), reopen);
}

void WorkerModel::greet(std::size_t sender) {
  context_.transmit({.kind = EventKind::greeting, .sender = static_cast<std::uint8_t>(sender), .boot = store_.boot()});
}

void WorkerModel::reply(std::size_t index, Verdict verdict) {
  const Job &job = context_.jobs[index];
  context_.trace("  worker: {} for job {}", onced::traits_of(verdict.outcome).name, index);
  if (!knows_[job.sender]) return context_.trace("  lost: the worker does not know the way back");
  context_.transmit({.kind = EventKind::reply,
                     .sender = job.sender,
                     .job = static_cast<std::uint8_t>(index),
                     .outcome = verdict.outcome,
                     .sequence = job.sequence,
                     .tag = job.tag,
                     .result = verdict.result});
}

} // namespace simulation
