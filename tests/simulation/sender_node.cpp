#include "sender_node.hpp"

#include <algorithm>
#include <chrono>

#include "rules.hpp"

namespace simulation {

using onced::MonotonicTime;
using onced::Redelivery;
using onced::Sequence;
using std::chrono::milliseconds;

namespace {
// How long a sender waits for room in its pipe.
constexpr milliseconds pipe_wait{20};

onced::Bytes bytes_of_result(std::uint64_t result) {
  return result == 0 ? onced::Bytes() : onced::Bytes(1 + result % 8, static_cast<char>('0' + result % 64));
}
} // namespace

SenderNode::SenderNode(Context &context, std::uint8_t id, bool durable)
    : context_(context), id_(id), durable_(durable), model_(context.plan.redelivery) {
  begin_life();
}

void SenderNode::begin_life() {
  ++life_;
  machine_.emplace(machine_options(), context_.chance.source());
  model_.begin_life();
  greeted_ = false;
  pipe_full_ = false;
  read_up_to_ = 0;
  first_boot_.reset();
  next_hello_ = context_.now;
  machine_wake_.reset();
}

onced::RedeliveryOptions SenderNode::machine_options() const {
  onced::RedeliveryOptions options = context_.plan.redelivery;
  if (context_.mutated(Mutation::no_window)) options.window_jobs_max = options.jobs_max;
  if (context_.mutated(Mutation::impatient)) options.acknowledgement_timeout /= 4;
  return options;
}

// --- What happens to it ---------------------------------------------------------------------------------------------

void SenderNode::offer(std::size_t job) {
  offered_.push_back(job);
  if (machine_) step();
}

void SenderNode::on_connect() {
  if (!machine_) return;
  next_hello_ = context_.now;
  step();
}

void SenderNode::on_greeting(const Event &event) {
  if (!machine_) return;
  greeted_ = true;
  if (!first_boot_) first_boot_ = event.boot;
  if (model_.on_greeting(event.boot, context_.now)) ++context_.tally.new_boots;
  const std::uint32_t heard = context_.mutated(Mutation::dropped_boot) ? *first_boot_ : event.boot;
  onced::BootId boot;
  boot.bytes[7] = static_cast<std::uint8_t>(heard);
  machine_->on_greeting(boot, context_.now);
  step();
}

void SenderNode::on_reply(const Event &event) {
  if (!machine_) return;
  const std::uint64_t number = onced::number_of(event.sequence);
  const std::size_t job = number == 0 || number > jobs_.size() ? no_job : jobs_[number - 1];
  const onced::Bytes result = bytes_of_result(event.result);
  Redelivery::Reply reply{.sequence = event.sequence,
                          .tag = event.tag,
                          .outcome = event.outcome,
                          .result = result,
                          .detail = onced::traits_of(event.outcome).name,
                          .durability =
                              event.result % 2 == 0 ? onced::Durability::fsync : onced::Durability::page_cache};
  if (context_.mutated(Mutation::any_tag) && job != no_job) reply.tag = context_.jobs[job].tag;

  const bool final = onced::traits_of(event.outcome).final;
  Redelivery::ReplyResult heard{Redelivery::ReplyEffect::waiting, std::nullopt};
  if (final || !context_.mutated(Mutation::waits_inside)) heard = machine_->on_reply(reply, context_.now);
  if (heard.effect == Redelivery::ReplyEffect::ignored) ++context_.tally.ignored_replies;
  if (heard.effect == Redelivery::ReplyEffect::waiting) ++context_.tally.waits;
  model_.on_reply(event.sequence, event.tag, event.outcome, heard.effect, context_.now);
  must(heard.settled.has_value() == (heard.effect == Redelivery::ReplyEffect::settled), rules::only_sent);
  if (heard.settled) {
    check_record(*heard.settled, reply);
    on_settled(job, event);
  }
  step();
}

void SenderNode::check_record(const onced::Settled &settled, const Redelivery::Reply &reply) const {
  must(settled.sequence == reply.sequence && settled.outcome == reply.outcome && settled.result == reply.result &&
           settled.detail == reply.detail && settled.durability == reply.durability,
       rules::true_outcome);
  must(settled.attempts == model_.attempts(reply.sequence), rules::attempts);
  must(settled.job == context_.jobs[jobs_[onced::number_of(reply.sequence) - 1]].bytes, rules::never_changes);
}

void SenderNode::on_settled(std::size_t index, const Event &reply) {
  context_.trace("  sender {}: settles job {}: {}", id_, index, onced::traits_of(reply.outcome).name);
  Job &job = context_.jobs[index];
  context_.ledger.judge(job, index, reply.outcome, reply.result);

  ++context_.tally.settled;
  if (job.told) ++context_.tally.told_again;
  if (reply.outcome == onced::Outcome::conflict) ++context_.tally.conflicts;
  job.told = true;
  const Event tell{.kind = EventKind::tell, .sender = id_, .life = life_, .sequence = job.sequence};
  context_.schedule_in(context_.chance.up_to(milliseconds(1000)), tell);
}

void SenderNode::on_tell(const Event &event) {
  if (event.life != life_) return;
  release(onced::number_of(event.sequence));
}

void SenderNode::release(std::uint64_t number) {
  if (!kept_[number - 1]) return;
  kept_[number - 1] = false;
  --custody_;
}

void SenderNode::on_crash() {
  if (!machine_ || !durable_) return;
  ++context_.tally.sender_crashes;
  machine_.reset();
  ++life_;
  const Event start{.kind = EventKind::sender_start, .sender = id_, .life = life_};
  context_.schedule_in(context_.chance.up_to(pause_max), start);
}

void SenderNode::on_start(const Event &event) {
  if (event.life != life_) return;
  for (std::size_t place = 0; place < jobs_.size(); ++place)
    must(jobs_[place] == no_job || kept_[place] || context_.jobs[jobs_[place]].told, rules::nothing_vanishes);
  begin_life();
  step();
}

void SenderNode::on_wake() {
  if (!pipe_full_ && machine_wake_ == context_.now)
    must(machine_->due(context_.now - std::chrono::nanoseconds(1), 1, 1).empty(), rules::wakes);
  step();
}

std::optional<MonotonicTime> SenderNode::wake_at() const {
  if (!machine_) return std::nullopt;
  return machine_wake_ ? std::min(next_hello_, *machine_wake_) : next_hello_;
}

// --- What it does ---------------------------------------------------------------------------------------------------

void SenderNode::step() {
  if (context_.now >= next_hello_) say_hello();
  submit_offered();
  restore_from_outbox();
  send_due();
  model_.end_step(*machine_, pipe_full_, context_.now);
  machine_wake_ = pipe_full_ ? context_.now + pipe_wait : machine_->next_due(context_.now);
}

void SenderNode::say_hello() {
  context_.transmit({.kind = EventKind::hello, .sender = id_});
  last_hello_ = context_.now;
  next_hello_ = context_.now + (greeted_ ? milliseconds(hello_interval) : hello_retry);
  if (context_.mutated(Mutation::wall_clock) && context_.wall_jump().count() > 0) next_hello_ += hello_retry;
}

bool SenderNode::has_room_for(const Job &job) const {
  const bool has_room = machine_->has_room(job.bytes.size());
  must(has_room == model_.has_room(job.bytes.size()), rules::room);
  must(!machine_->has_room(context_.plan.redelivery.window_bytes_max + 1), rules::room);
  return has_room;
}

// An outbox holds more than the state machine.
void SenderNode::submit_offered() {
  for (; !offered_.empty() && (durable_ || has_room_for(context_.jobs[offered_.front()])); offered_.pop_front()) {
    // Now and then a sender settles a job by itself, which uses up a sequence.
    if (context_.chance.happens(5)) {
      if (!durable_) static_cast<void>(machine_->take_sequence());
      jobs_.push_back(no_job);
      kept_.push_back(false);
    }
    Job &job = context_.jobs[offered_.front()];
    job.issued_at = context_.wall();
    job.sequence = durable_ ? Sequence{jobs_.size() + 1} : machine_->add(job.bytes, job.tag, job.issued_at);
    must(onced::number_of(job.sequence) == jobs_.size() + 1, rules::never_changes);
    if (!durable_) model_.on_held(job);
    jobs_.push_back(static_cast<std::uint8_t>(offered_.front()));
    kept_.push_back(true);
    ++custody_;
  }
}

// As much as there is room for, in the order of the sequences.
void SenderNode::restore_from_outbox() {
  if (!durable_) return;
  for (; read_up_to_ < jobs_.size(); ++read_up_to_) {
    if (!kept_[read_up_to_]) continue;
    const Job &job = context_.jobs[jobs_[read_up_to_]];
    if (!has_room_for(job)) return;
    machine_->restore(job.sequence, job.bytes, job.tag, job.issued_at);
    model_.on_held(job);
  }
}

void SenderNode::send_due() {
  const std::size_t jobs_max = context_.plan.jobs_per_message;
  const std::size_t bytes_max = context_.plan.job_bytes_per_message;
  pipe_full_ = false;
  while (!pipe_full_) {
    auto jobs = machine_->due(context_.now, jobs_max, bytes_max);
    model_.check_due(jobs, jobs_max, bytes_max, context_.now);
    if (jobs.empty()) return;
    must(machine_->next_due(context_.now) == context_.now, rules::wakes);
    const bool again = std::any_of(jobs.begin(), jobs.end(), [](const auto &job) { return job.attempt > 1; });
    if (again && context_.now - last_hello_ >= hello_retry) say_hello();
    if (!context_.calm() && context_.chance.happens(context_.plan.refused_percent)) {
      pipe_full_ = true;
      ++context_.tally.full_pipes;
      std::erase_if(jobs, [this](const auto &) { return context_.chance.happens(50); });
    }
    for (const Redelivery::DueJob &due : jobs)
      hand_over(due);
    machine_->sent(jobs, context_.now);
  }
}

void SenderNode::hand_over(Redelivery::DueJob due) {
  const std::uint64_t number = onced::number_of(due.sequence);
  const std::uint8_t index = jobs_[number - 1];
  if (context_.mutated(Mutation::forgotten_attempts)) due.attempt = 1;
  context_.trace("  sender {}: sends job {}, attempt {}", id_, index, due.attempt);
  model_.on_sent(due, context_.jobs[index], context_.now);
  if (due.attempt > 1) ++context_.tally.resends;
  if (context_.mutated(Mutation::forgetful_outbox)) release(number);
  context_.transmit({.kind = EventKind::delivery, .sender = id_, .job = index});
}

} // namespace simulation
