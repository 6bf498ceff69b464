#include <stdexcept>

#include <benchmark/benchmark.h>

#include "benchmarks.hpp"
#include "sender/redelivery.hpp"
#include "sources.hpp"

namespace onced::bench::micro {
namespace {

constexpr std::size_t jobs_at_a_time = 256;

// Jobs go in, out, and are settled, a batch at a time, with time standing still.
class Machine {
public:
  Machine() : machine_({}, random_), jobs_(make_jobs(jobs_at_a_time, 4)) {
    Digester digester;
    tags_.reserve(jobs_at_a_time);
    for (const Bytes &job : jobs_)
      tags_.push_back(digester.tag(job));
    machine_.on_greeting({.bytes = {1}}, now_);
  }

  void submit() {
    for (std::size_t at = 0; at < jobs_at_a_time; ++at)
      machine_.add(jobs_[at], tags_[at], issued_at_);
  }
  std::vector<Redelivery::DueJob> send() {
    auto due = machine_.due(now_, jobs_at_a_time, limits::message_bytes_max);
    if (due.size() != jobs_at_a_time) throw std::runtime_error("jobs that are due are not sent");
    machine_.sent(due, now_);
    return due;
  }
  void settle(const std::vector<Redelivery::DueJob> &sent) {
    for (const auto &job : sent) {
      Redelivery::Reply reply;
      reply.sequence = job.sequence;
      reply.tag = job.tag;
      reply.outcome = Outcome::stored;
      const auto applied = machine_.on_reply(reply, now_);
      if (applied.effect != Redelivery::ReplyEffect::settled) throw std::runtime_error("a job does not settle");
    }
  }
  [[nodiscard]] std::size_t unsettled() const { return machine_.counters().unsettled; }

private:
  SeededRandom random_{1};
  Redelivery machine_;
  std::vector<Bytes> jobs_;
  std::vector<Tag> tags_;
  MonotonicTime now_{std::chrono::hours(1)};
  WallTime issued_at_{std::chrono::hours(1)};
};

// The argument: jobs that are in flight all the while.
void submit_send_settle(benchmark::State &state) {
  Machine machine;
  const auto in_flight = static_cast<std::size_t>(state.range(0));
  while (machine.unsettled() < in_flight) {
    machine.submit();
    (void)machine.send();
  }
  for (auto _ : state) {
    machine.submit();
    machine.settle(machine.send());
  }
  if (machine.unsettled() != in_flight) throw std::runtime_error("not as many jobs are unsettled as must be");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(jobs_at_a_time));
}

} // namespace

void register_redelivery(Registry &registry) {
  registry.add("redelivery/submit_send_settle", submit_send_settle)->ArgName("in_flight")->Arg(0)->Arg(7680);
}

} // namespace onced::bench::micro
