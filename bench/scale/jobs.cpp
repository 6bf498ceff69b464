#include "jobs.hpp"

#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "base/messagepack.hpp"
#include "onced/outcome.hpp"
#include "onced/random.hpp"

namespace onced::bench::scale {
namespace {

constexpr std::uint64_t addends = 4;

// SplitMix64 makes another 64 bits of each 64: no two numbers of a seed meet, and neighbours lie far apart.
std::string operation_id(std::uint64_t seed, std::uint64_t number) {
  return fmt::format("scale-{:016x}", SeededRandom(seed ^ number).next());
}

void make_job(std::uint64_t seed, std::uint64_t number, Bytes &job) {
  job.clear();
  messagepack::Writer writer(job);
  writer.map(2).string("operation_id").string(operation_id(seed, number));
  writer.string("numbers").array(addends);
  for (std::uint64_t addend = 0; addend < addends; ++addend)
    writer.positive(number * 7 + addend);
}

} // namespace

Key key_of_job(std::uint64_t seed, std::uint64_t number) {
  return key_of_operation("sum", operation_id(seed, number));
}

Bytes result_of_job(std::uint64_t number) {
  Bytes result;
  messagepack::Writer(result).positive(addends * number * 7 + addends * (addends - 1) / 2);
  return result;
}

void Batch::add(std::uint64_t number) {
  if (parsed_.size() == deliveries_.size()) parsed_.emplace_back();
  Parsed &parsed = parsed_[deliveries_.size()];
  parsed.number = number;
  make_job(seed_, number, parsed.bytes);
  if (!parser_.parse(parsed.bytes, parsed.job)) throw std::runtime_error("a delivery is no job");
  assign_key(parsed.job, parsed.key);
  Delivery &delivery = deliveries_.emplace_back();
  delivery.bytes = parsed.bytes;
  delivery.tag = digester_.tag(parsed.bytes);
  delivery.job = &parsed.job;
  delivery.key = &parsed.key;
  delivery.digest = digester_.intent(parsed.job.type, parsed.job.payload);
}

void Batch::check(std::span<const Settlement> settlements, Outcome expected) const {
  if (settlements.size() != deliveries_.size()) throw std::runtime_error("not every delivery was settled");
  for (std::size_t at = 0; at < settlements.size(); ++at) {
    const Settlement &settlement = settlements[at];
    const bool own_result = settlement.result == result_of_job(parsed_[at].number);
    if (settlement.outcome == expected && own_result) continue;
    throw std::runtime_error(fmt::format(
        "job {} must be {} with its own result, and is {} with {} ({})", parsed_[at].number, traits_of(expected).name,
        traits_of(settlement.outcome).name, own_result ? "it" : "another or none", settlement.detail));
  }
}

} // namespace onced::bench::scale
