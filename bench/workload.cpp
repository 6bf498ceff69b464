#include "workload.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "job/messagepack.hpp"
#include "onced/digest.hpp"
#include "onced/random.hpp"
#include "wire/messages.hpp"

namespace onced::bench {
namespace {

// Every delivery claims this time, so that the bytes do not depend on the day.
constexpr WallTime issued_at{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};

Bytes make_job(std::uint64_t number, std::uint64_t seed) {
  Bytes job;
  messagepack::Writer writer(job);
  writer.map(2).string("operation_id").string("bench-" + std::to_string(seed) + "-" + std::to_string(number));
  writer.string("numbers").array(4);
  for (std::uint64_t addend = 0; addend < 4; ++addend)
    writer.positive(number * 7 + addend);
  return job;
}

// Which job each delivery is of: every job once, then copies, shuffled.
std::vector<std::size_t> draw_jobs(std::size_t deliveries, std::size_t distinct, Random &random) {
  std::vector<std::size_t> jobs(deliveries);
  std::iota(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(distinct), std::size_t{0});
  for (std::size_t at = distinct; at < deliveries; ++at)
    jobs[at] = random.next() % distinct;
  for (std::size_t at = deliveries - 1; at > 0; --at)
    std::swap(jobs[at], jobs[random.next() % (at + 1)]);
  return jobs;
}

} // namespace

Workload make_workload(std::size_t deliveries, double share, std::size_t per_message, std::uint64_t seed) {
  SeededRandom random(seed);
  Workload workload;
  workload.deliveries = deliveries;
  workload.distinct =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(static_cast<double>(deliveries) * (1 - share))));
  for (auto &byte : workload.sender.bytes)
    byte = static_cast<std::uint8_t>(random.next());

  const auto jobs = draw_jobs(deliveries, workload.distinct, random);
  Digester digester;
  for (std::size_t first = 0; first < deliveries; first += per_message) {
    const std::size_t count = std::min(per_message, deliveries - first);
    std::vector<Bytes> bytes;
    for (std::size_t at = first; at < first + count; ++at)
      bytes.push_back(make_job(jobs[at], seed));
    std::vector<wire::BatchEntry> entries;
    for (std::size_t at = 0; at < count; ++at) {
      workload.job_bytes += bytes[at].size();
      entries.push_back({.sequence = Sequence{first + at + 1},
                         .tag = digester.tag(bytes[at]),
                         .attempt = 1,
                         .issued_at = issued_at,
                         .job = bytes[at]});
    }
    auto &message = workload.messages.emplace_back();
    message.deliveries = count;
    wire::encode_batch(workload.sender, entries, message.bytes);
  }
  return workload;
}

} // namespace onced::bench
