#include "worker_model.hpp"

namespace simulation {

using onced::Outcome;
using Phase = Ledger::Phase;

void WorkerModel::on_hello(const Event &event) {
  if (!ready_) return;
  knows_[event.sender] = true;
  greet(event.sender);
}

void WorkerModel::on_delivery(const Event &event) {
  if (!ready_) return context_.trace("  lost: no worker");
  ++context_.tally.deliveries;
  const Job &job = context_.jobs[event.job];
  const auto present = look_up(job);
  if (present && present->outcome != Outcome::conflict) return reply(event.job, *present);
  if (context_.now < busy_until_ && !context_.calm()) return reply(event.job, {});

  Event commit{.kind = EventKind::commit, .job = event.job, .found_absent = !present, .life = life_};
  context_.schedule_in(context_.chance.up_to(context_.plan.commit_max), commit);
  if (context_.mutated(Mutation::early_acknowledgement)) reply(event.job, {Outcome::stored, 1});
}

void WorkerModel::on_commit(const Event &event) {
  if (event.life != life_) return context_.trace("  forgotten: of an earlier life");
  const Phase before = context_.ledger.row(context_.jobs[event.job].key).phase;
  Verdict verdict;
  if (write([&] { verdict = transact(event.job, event.found_absent); }) != Write::done) return;
  if (before == Phase::absent && verdict.outcome == Outcome::accepted) queue_.add(context_.jobs[event.job].key);
  reply(event.job, verdict);
}

// While the store is not open, the queue's writes wait for it.
void WorkerModel::on_queue_write(const Event &event) {
  if (event.life != queue_.life()) return context_.trace("  forgotten: of an earlier life");
  if (!ready_) return queue_.hold(event);
  queue_.before_write(event);
  bool is_written = false;
  const Write end = write([&] { is_written = queue_.write(event); });
  if (end == Write::unknown) queue_.on_unknown(event);
  if (end != Write::done) return;
  if (const auto verdict = queue_.on_written(event, is_written)) reply(event.job, *verdict);
}

template <class Transaction> WorkerModel::Write WorkerModel::write(const Transaction &transact) {
  Chance &chance = context_.chance;
  const bool crashes = !context_.calm() && chance.happens(context_.plan.crash_percent);
  const bool crashes_before = crashes && chance.happens(50);
  const bool fails = !crashes && !context_.calm() && chance.happens(context_.plan.write_failure_percent);
  if (!crashes_before && (!fails || chance.happens(50))) transact();
  if (crashes) on_crash();
  if (fails) fail_write();
  if (crashes) return Write::crashed;
  return fails ? Write::unknown : Write::done;
}

void WorkerModel::on_crash() {
  context_.trace("  worker: crashes");
  if (ready_) ++context_.tally.worker_crashes;
  ready_ = false;
  end_life();
  queue_.on_crash();
  Event start{.kind = EventKind::worker_start, .life = life_};
  context_.schedule_in(context_.chance.up_to(pause_max), start);
}

void WorkerModel::on_start(const Event &event) {
  if (event.life != life_) return;
  knows_ = {};
  ready_ = true;
  queue_.begin_life(++boot_);
  for (std::size_t sender = 0; sender < context_.plan.senders; ++sender) {
    const Event connect{.kind = EventKind::connect, .sender = static_cast<std::uint8_t>(sender)};
    context_.schedule_in(context_.chance.up_to(std::chrono::milliseconds(500)), connect);
  }
}

void WorkerModel::on_reopen(const Event &event) {
  if (event.life != life_) return;
  ready_ = true;
  ++boot_;
  queue_.on_reopen();
  for (std::size_t sender = 0; sender < knows_.size(); ++sender)
    if (knows_[sender]) greet(sender);
}

// A job whose key is taken gets the verdict of that key's row.
std::optional<Verdict> WorkerModel::look_up(const Job &job) const {
  const Ledger::Row &row = context_.ledger.row(job.key);
  if (job.kind == JobKind::garbage || row.phase == Phase::absent) return std::nullopt;
  if (row.intent != job.intent) return Verdict{Outcome::conflict, 0};
  if (row.phase == Phase::pending) return Verdict{Outcome::accepted, 0};
  if (row.phase == Phase::failed) return Verdict{Outcome::failed, 0};
  return Verdict{Outcome::duplicate, row.result};
}

Verdict WorkerModel::transact(std::size_t index, bool found_absent) {
  const Job &job = context_.jobs[index];
  Ledger &ledger = context_.ledger;
  const bool looks_again = !(found_absent && context_.mutated(Mutation::no_guard));
  if (const auto present = look_up(job); present && looks_again) {
    if (present->outcome == Outcome::conflict) ledger.bury(index);
    return *present;
  }
  switch (job.kind) {
  case JobKind::garbage:
    ledger.bury(index);
    return {Outcome::invalid, 0};
  case JobKind::refused:
    ledger.bury(index);
    return {Outcome::failed, 0};
  case JobKind::queued:
  case JobKind::queued_refused:
    ledger.claim(job, index);
    return {Outcome::accepted, 0};
  case JobKind::pure:
    break;
  }
  return {Outcome::stored, ledger.commit(job, index)};
}

// Whether the row is there is unknown: nothing is said of it, and of what else was in hand.
void WorkerModel::fail_write() {
  context_.trace("  worker: write fails");
  ++context_.tally.write_failures;
  ready_ = false;
  end_life();
  const Event reopen{.kind = EventKind::store_reopen, .life = life_};
  context_.schedule_in(context_.chance.up_to(pause_max), reopen);
}

void WorkerModel::greet(std::size_t sender) {
  context_.transmit({.kind = EventKind::greeting, .sender = static_cast<std::uint8_t>(sender), .boot = boot_});
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
