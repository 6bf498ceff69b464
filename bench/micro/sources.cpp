#include "sources.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/messagepack.hpp"
#include "onced/random.hpp"

namespace onced::bench::micro {
namespace {

constexpr std::uint64_t seed = 1;

template <class T> T require(Result<T> result) {
  if (!result) throw std::runtime_error(describe(result.error()));
  return std::move(*result);
}

} // namespace

std::vector<Bytes> make_jobs(std::size_t count, std::size_t numbers) {
  SeededRandom random(seed);
  std::vector<Bytes> jobs(count);
  for (std::size_t at = 0; at < count; ++at) {
    messagepack::Writer writer(jobs[at]);
    writer.map(2).string("operation_id").string("micro-" + std::to_string(at));
    writer.string("numbers").array(numbers);
    for (std::size_t number = 0; number < numbers; ++number)
      writer.positive(random.next() % 1'000'000);
  }
  return jobs;
}

Deliveries::Deliveries(std::vector<Bytes> jobs) : jobs_(std::move(jobs)), parsed_(jobs_.size()) {
  JobParser parser;
  Digester digester;
  deliveries_.reserve(jobs_.size());
  for (std::size_t at = 0; at < jobs_.size(); ++at) {
    Parsed &parsed = parsed_[at];
    if (!parser.parse(jobs_[at], parsed.job)) throw std::runtime_error("a delivery is no job");
    assign_key(parsed.job, parsed.key);
    Delivery &delivery = deliveries_.emplace_back();
    delivery.bytes = jobs_[at];
    delivery.tag = digester.tag(jobs_[at]);
    delivery.job = &parsed.job;
    delivery.key = &parsed.key;
    delivery.digest = digester.intent(parsed.job.type, parsed.job.payload);
  }
}

void Deliveries::renew(std::uint64_t number) {
  // Odd, so that no two products are equal; they lie in no order, as the ids of a producer do.
  constexpr std::uint64_t scatter = 0x9E3779B97F4A7C15;
  for (std::size_t at = 0; at < parsed_.size(); ++at) {
    parsed_[at].job.operation_id = "micro-" + std::to_string((number * parsed_.size() + at) * scatter);
    assign_key(parsed_[at].job, parsed_[at].key);
  }
}

OwnStore::OwnStore(std::size_t cache_bytes)
    : cache_bytes_(cache_bytes),
      lock_(require(DirectoryLock::take(directory_.path(), DirectoryLock::Mode::exclusive))) {
  reopen();
}

void OwnStore::reopen() {
  store_.reset();
  StoreOptions options;
  options.directory = directory_.path();
  options.committed_cache_bytes = cache_bytes_;
  store_ = require(Store::open(options, clock_, random_));
}

void OwnStore::commit(std::span<const Delivery> batch, Outcome expected) {
  const auto settlements = require(store_->commit(batch, handlers_));
  const bool as_expected = std::all_of(settlements.begin(), settlements.end(),
                                       [&](const Settlement &settlement) { return settlement.outcome == expected; });
  if (!as_expected) throw std::runtime_error("not every delivery was " + std::string(traits_of(expected).name));
}

void OwnStore::expect_results(std::uint64_t results) const {
  if (const auto there = require(store_->count()).results; there != results) {
    throw std::runtime_error(std::to_string(there) + " results on disk, not " + std::to_string(results));
  }
}

} // namespace onced::bench::micro
