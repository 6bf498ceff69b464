#include "workload.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/messagepack.hpp"
#include "onced/digest.hpp"
#include "onced/random.hpp"
#include "wire/messages.hpp"

namespace onced::bench {
namespace {

// Every delivery claims this time, so that the bytes do not depend on the day.
constexpr WallTime issued_at{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};

// Another variant has the same id and another payload.
enum class Variant : std::uint8_t { original, changed };

Bytes make_job(std::uint64_t number, std::uint64_t seed, Variant variant = Variant::original) {
  const std::uint64_t base = number * 7 + (variant == Variant::changed ? 1 : 0);
  Bytes job;
  messagepack::Writer writer(job);
  writer.map(2).string("operation_id").string("bench-" + std::to_string(seed) + "-" + std::to_string(number));
  writer.string("numbers").array(4);
  for (std::uint64_t addend = 0; addend < 4; ++addend)
    writer.positive(base + addend);
  return job;
}

void append_jobs(std::vector<Bytes> &jobs, std::size_t first, std::size_t count, std::uint64_t seed,
                 Variant variant = Variant::original) {
  jobs.reserve(jobs.size() + count);
  for (std::size_t number = first; number < first + count; ++number)
    jobs.push_back(make_job(number, seed, variant));
}

// Appends so many deliveries of the jobs from `first` on: each of these once, then copies.
void append_arrivals(std::vector<std::size_t> &arrivals, std::size_t deliveries, std::size_t first,
                     std::size_t distinct, Random &random) {
  arrivals.reserve(arrivals.size() + deliveries);
  for (std::size_t at = 0; at < deliveries; ++at)
    arrivals.push_back(first + (at < distinct ? at : random.next() % distinct));
}

void shuffle(std::vector<std::size_t> &arrivals, Random &random) {
  for (std::size_t at = arrivals.size() - 1; at > 0; --at)
    std::swap(arrivals[at], arrivals[random.next() % (at + 1)]);
}

SenderId draw_sender(Random &random) {
  SenderId sender;
  for (auto &byte : sender.bytes)
    byte = static_cast<std::uint8_t>(random.next());
  return sender;
}

void encode_deliveries(const Workload &workload, std::size_t first, std::size_t count, std::uint32_t attempt,
                       Digester &digester, Bytes &out) {
  std::vector<wire::BatchEntry> entries;
  entries.reserve(count);
  for (std::size_t at = first; at < first + count; ++at) {
    const Bytes &job = workload.jobs[workload.arrivals[at]];
    entries.push_back({.sequence = Sequence{at + 1},
                       .tag = digester.tag(job),
                       .attempt = attempt,
                       .issued_at = issued_at,
                       .job = job});
  }
  wire::encode_batch(workload.sender, entries, out);
}

// Packs the arrivals into messages.
void pack(Workload &workload, std::size_t per_message) {
  workload.deliveries = workload.arrivals.size();
  Digester digester;
  for (std::size_t first = 0; first < workload.deliveries; first += per_message) {
    auto &message = workload.messages.emplace_back();
    message.deliveries = std::min(per_message, workload.deliveries - first);
    encode_deliveries(workload, first, message.deliveries, 1, digester, message.bytes);
  }
  for (const std::size_t job : workload.arrivals)
    workload.job_bytes += workload.jobs[job].size();
}

std::size_t share_of(std::size_t count, double share) {
  return static_cast<std::size_t>(std::llround(static_cast<double>(count) * share));
}

// Each of `count` jobs once, in the order of their numbers.
Workload make_preload(std::size_t first, std::size_t count, std::uint64_t seed, Random &random) {
  Workload workload;
  workload.sender = draw_sender(random);
  append_jobs(workload.jobs, first, count, seed);
  workload.arrivals.resize(count);
  std::iota(workload.arrivals.begin(), workload.arrivals.end(), std::size_t{0});
  workload.distinct = count;
  pack(workload, std::min<std::size_t>(256, preloaded_max));
  return workload;
}

} // namespace

Bytes encode_again(const Workload &workload, std::size_t message, std::uint32_t attempt) {
  Digester digester;
  Bytes bytes;
  encode_deliveries(workload, message * workload.messages.front().deliveries, workload.messages[message].deliveries,
                    attempt, digester, bytes);
  return bytes;
}

Workload make_workload(std::size_t deliveries, double share, std::size_t per_message, std::uint64_t seed) {
  SeededRandom random(seed);
  Workload workload;
  workload.sender = draw_sender(random);
  workload.distinct = std::max<std::size_t>(1, share_of(deliveries, 1 - share));
  append_jobs(workload.jobs, 0, workload.distinct, seed);
  append_arrivals(workload.arrivals, deliveries, 0, workload.distinct, random);
  shuffle(workload.arrivals, random);
  pack(workload, per_message);
  return workload;
}

Traffic make_traffic(const TrafficPlan &plan) {
  SeededRandom random(plan.seed);
  Traffic traffic;
  traffic.conflicts = share_of(plan.deliveries, plan.conflict_share);
  const std::size_t others = plan.deliveries - traffic.conflicts;
  const bool all_known = plan.duplicate_share >= 1;
  const std::size_t known = std::min(all_known ? others : traffic.conflicts, preloaded_max);
  traffic.stored = all_known ? 0 : std::clamp<std::size_t>(share_of(others, 1 - plan.duplicate_share), 1, others);
  traffic.duplicates = others - traffic.stored;
  traffic.results = known + traffic.stored;
  traffic.dead_letters = std::min(traffic.conflicts, known);

  Workload &measured = traffic.measured;
  measured.sender = draw_sender(random);
  const std::size_t originals = all_known ? known : traffic.stored;
  append_jobs(measured.jobs, 0, originals, plan.seed);
  append_arrivals(measured.arrivals, others, 0, originals, random);
  append_jobs(measured.jobs, traffic.stored, traffic.dead_letters, plan.seed, Variant::changed);
  append_arrivals(measured.arrivals, traffic.conflicts, originals, traffic.dead_letters, random);
  shuffle(measured.arrivals, random);
  measured.distinct = measured.jobs.size();
  pack(measured, plan.per_message);
  traffic.preload = make_preload(traffic.stored, known, plan.seed, random);
  return traffic;
}

} // namespace onced::bench
