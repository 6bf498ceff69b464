#include "world.hpp"

#include <array>
#include <chrono>
#include <string_view>

#include "rules.hpp"

namespace simulation {

using std::chrono::milliseconds;

namespace {

std::string_view name_of(EventKind kind) {
  constexpr std::array<std::string_view, 21> names{
      "submit",       "hello",        "delivery",  "greeting",  "reply",        "connect",      "tell",
      "commit",       "receive",      "give_back", "heartbeat", "handler_end",  "settle",       "worker_crash",
      "worker_start", "store_reopen", "busy",      "outage",    "sender_crash", "sender_start", "forgery"};
  return names[static_cast<std::size_t>(kind)];
}

JobKind kind_of(std::uint64_t bits) {
  constexpr std::array<JobKind, 10> shares{JobKind::pure,           JobKind::pure,   JobKind::pure,   JobKind::pure,
                                           JobKind::refused,        JobKind::queued, JobKind::queued, JobKind::queued,
                                           JobKind::queued_refused, JobKind::garbage};
  return shares[bits % shares.size()];
}

onced::Tag tag_of(std::uint64_t bits) {
  onced::Tag tag;
  for (std::uint8_t &byte : tag.bytes) {
    byte = static_cast<std::uint8_t>(bits);
    bits >>= 8U;
  }
  return tag;
}

} // namespace

World::World(std::uint64_t seed, const RunOptions &options)
    : context_(seed, options), worker_(context_), unsubmitted_(context_.plan.jobs) {
  for (std::size_t id = 0; id < context_.plan.senders; ++id)
    senders_.emplace_back(context_, static_cast<std::uint8_t>(id), context_.chance.happens(70));
  draw_jobs();
  worker_.begin();
  schedule_faults();
}

// Two jobs of one intent may differ in their bytes, as JSON and MessagePack do, but not in their kind.
void World::draw_jobs() {
  Chance &chance = context_.chance;
  const std::uint64_t kinds = chance.bits();
  context_.jobs.reserve(context_.plan.jobs);
  for (std::size_t index = 0; index < context_.plan.jobs; ++index) {
    Job job;
    job.sender = static_cast<std::uint8_t>(chance.below(context_.plan.senders));
    job.key = static_cast<std::uint8_t>(chance.below(context_.plan.keys));
    job.intent = static_cast<std::uint8_t>(chance.below(context_.plan.intents));
    job.kind = kind_of(mixed(kinds + 16U * job.key + job.intent));
    const std::size_t padding = chance.below(14);
    job.bytes = {static_cast<char>('a' + job.key), static_cast<char>('0' + job.intent)};
    job.bytes.append(padding, ' ');
    job.tag = tag_of(mixed(256U * padding + 16U * job.key + job.intent + 1));
    context_.jobs.push_back(job);
    const Event submit{.kind = EventKind::submit, .sender = job.sender, .job = static_cast<std::uint8_t>(index)};
    // Half of them in a burst.
    const auto submitted_within = chance.happens(50) ? milliseconds(10) : context_.plan.horizon;
    context_.schedule_in(chance.up_to(submitted_within), submit);
  }
}

void World::schedule_faults() {
  const Plan &plan = context_.plan;
  schedule_some(plan.worker_crashes, EventKind::worker_crash);
  schedule_some(plan.sender_crashes, EventKind::sender_crash);
  schedule_some(plan.busy_times, EventKind::busy);
  schedule_some(plan.outages, EventKind::outage);
  schedule_some(plan.forgeries, EventKind::forgery);
}

void World::schedule_some(std::size_t count, EventKind kind) {
  for (std::size_t fault = 0; fault < count; ++fault) {
    Event event{.kind = kind, .lasts = context_.chance.up_to(pause_max)};
    event.sender = static_cast<std::uint8_t>(context_.chance.below(senders_.size()));
    context_.schedule_in(context_.chance.up_to(context_.plan.horizon - milliseconds(1)), event);
  }
}

void World::run() {
  std::uint64_t calm_steps = 0;
  while (!done()) {
    step();
    ++context_.tally.steps;
    if (!context_.calm()) continue;
    check_bounds(++calm_steps);
  }
  for (const Job &job : context_.jobs)
    must(job.told, rules::nothing_vanishes);
  worker_.check_sums();
}

void World::check_bounds(std::uint64_t calm_steps) const {
  const auto since = context_.now - context_.quiet_from;
  if (since <= context_.plan.settling_max() && calm_steps <= context_.plan.calm_steps_max(since)) return;
  must(!context_.ledger.any_pending(), rules::not_forgotten);
  must(false, rules::settles);
}

bool World::done() const {
  if (unsubmitted_ > 0) return false;
  for (const SenderNode &sender : senders_)
    if (!sender.idle()) return false;
  return true;
}

// Whatever comes next: an event, or a sender's or the worker's own time to wake.
void World::step() {
  SenderNode *first = nullptr;
  auto first_at = context_.events.empty() ? onced::MonotonicTime::max() : context_.events.next_at();
  for (SenderNode &sender : senders_) {
    const auto wake_at = sender.wake_at();
    if (!wake_at || *wake_at >= first_at) continue;
    first = &sender;
    first_at = *wake_at;
  }
  const auto worker_at = worker_.wake_at();
  const bool worker_is_first = worker_at && *worker_at < first_at;
  if (worker_is_first) first_at = *worker_at;
  must(first_at >= context_.now && first_at != onced::MonotonicTime::max(), rules::wakes);
  context_.now = first_at;
  context_.note(static_cast<std::uint64_t>((first_at - Context::start).count()));
  if (worker_is_first) {
    context_.trace("wake worker");
    return worker_.on_wake();
  }
  if (first != nullptr) {
    context_.trace("wake sender {}", first->id());
    return first->on_wake();
  }
  const Event event = context_.events.take();
  context_.note((static_cast<std::uint64_t>(event.kind) << 16U) + 256U * event.sender + event.job);
  dispatch(event);
}

void World::trace(const Event &event) const {
  if (!context_.options.trace) return;
  const auto name = name_of(event.kind);
  const auto sequence = onced::number_of(event.sequence);
  switch (event.kind) {
  case EventKind::reply:
    return context_.trace("{}: sender {}, sequence {}, {}", name, event.sender, sequence,
                          onced::traits_of(event.outcome).name);
  case EventKind::greeting:
    return context_.trace("{}: sender {}, boot {}", name, event.sender, event.boot);
  case EventKind::submit:
  case EventKind::delivery:
    return context_.trace("{}: sender {}, job {}", name, event.sender, event.job);
  case EventKind::commit:
    return context_.trace("{}", name);
  case EventKind::receive:
  case EventKind::give_back:
  case EventKind::heartbeat:
  case EventKind::handler_end:
  case EventKind::settle:
    return context_.trace("{}: job {}, token {}.{}{}", name, event.job, event.token.boot, event.token.count,
                          event.again ? ", again" : "");
  case EventKind::tell:
    return context_.trace("{}: sender {}, sequence {}", name, event.sender, sequence);
  case EventKind::busy:
  case EventKind::outage:
    return context_.trace("{}: for {} ms", name, event.lasts / milliseconds(1));
  case EventKind::worker_crash:
  case EventKind::worker_start:
  case EventKind::store_reopen:
    return context_.trace("{}", name);
  case EventKind::hello:
  case EventKind::connect:
  case EventKind::sender_crash:
  case EventKind::sender_start:
  case EventKind::forgery:
    return context_.trace("{}: sender {}", name, event.sender);
  }
}

void World::dispatch(const Event &event) {
  trace(event);
  SenderNode &sender = senders_[event.sender];
  switch (event.kind) {
  case EventKind::submit:
    --unsubmitted_;
    return sender.offer(event.job);
  case EventKind::hello:
    return worker_.on_hello(event);
  case EventKind::delivery:
    return worker_.on_delivery(event);
  case EventKind::greeting:
    return sender.on_greeting(event);
  case EventKind::reply:
    return sender.on_reply(event);
  case EventKind::connect:
    return sender.on_connect();
  case EventKind::tell:
    return sender.on_tell(event);
  case EventKind::commit:
    return worker_.on_commit(event);
  case EventKind::receive:
  case EventKind::give_back:
  case EventKind::settle:
    return worker_.on_queue_write(event);
  case EventKind::heartbeat:
    return worker_.queue().on_heartbeat(event);
  case EventKind::handler_end:
    return worker_.queue().on_handler_end(event);
  case EventKind::worker_crash:
    return worker_.on_crash();
  case EventKind::worker_start:
    return worker_.on_start(event);
  case EventKind::store_reopen:
    return worker_.on_reopen(event);
  case EventKind::busy:
    return worker_.on_busy(event);
  case EventKind::outage:
    context_.outage_until = context_.now + event.lasts;
    return;
  case EventKind::sender_crash:
    return sender.on_crash();
  case EventKind::sender_start:
    return sender.on_start(event);
  case EventKind::forgery:
    return forge(event);
  }
}

// Any outcome for any sequence: with a tag of no job, or with that of a job with other bytes.
void World::forge(const Event &event) {
  Chance &chance = context_.chance;
  SenderNode &sender = senders_[event.sender];
  Event reply = event;
  reply.kind = EventKind::reply;
  reply.sequence = onced::Sequence{chance.below(sender.sequences() + 2)};
  reply.outcome = static_cast<onced::Outcome>(chance.below(onced::outcome_table.size()));
  reply.result = 1'000'000;
  reply.tag = tag_of(chance.bits());
  const Job &other = context_.jobs[chance.below(context_.jobs.size())];
  bool is_its_own = false;
  for (const Job &job : context_.jobs)
    is_its_own |= job.sender == event.sender && job.sequence == reply.sequence && job.tag == other.tag;
  if (!is_its_own && chance.happens(50)) reply.tag = other.tag;
  trace(reply);
  sender.on_reply(reply);
}

} // namespace simulation
