#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "batches.hpp"
#include "onced/store.hpp"
#include "worker/intake.hpp"

namespace onced::bench::limits {
namespace {

// A message as the gateway would hand it over; it borrows the bytes, which are not changed.
worker::Arrival arrival_of(const Workload::Message &message) {
  worker::Arrival arrival;
  arrival.frame = zmq::message_t(const_cast<char *>(message.bytes.data()), message.bytes.size(), nullptr);
  return arrival;
}

// A store of its own, and what it answered.
class Guard {
public:
  explicit Guard(const Setting &setting) : traffic_(setting.traffic) {
    const auto path = setting.directory / "data";
    auto lock = DirectoryLock::take(path, DirectoryLock::Mode::exclusive);
    if (!lock) throw std::runtime_error(describe(lock.error()));
    lock_ = std::make_unique<DirectoryLock>(std::move(*lock));
    StoreOptions options;
    options.directory = path;
    auto store = Store::open(options, clock_, random_);
    if (!store) throw std::runtime_error(describe(store.error()));
    store_ = std::move(*store);
    preload();
  }

  // From any thread. Of the batch, so many were recalled.
  void commit(std::span<const Delivery> batch, std::size_t recalled = 0) {
    const auto settlements = store_->commit(batch, handlers_);
    if (!settlements) throw std::runtime_error(describe(settlements.error()));
    std::size_t stored = 0;
    std::size_t duplicates = recalled;
    for (const Settlement &settlement : *settlements) {
      stored += settlement.outcome == Outcome::stored ? 1U : 0U;
      duplicates += settlement.outcome == Outcome::duplicate ? 1U : 0U;
    }
    stored_ += stored;
    duplicates_ += duplicates;
  }

  [[nodiscard]] const Store &store() const { return *store_; }

  void check() const {
    const auto counts = store_->count();
    if (!counts) throw std::runtime_error(describe(counts.error()));
    if (stored_ == traffic_.stored && duplicates_ == traffic_.duplicates && counts->results == traffic_.results) return;
    throw std::runtime_error("stored " + std::to_string(stored_) + " and " + std::to_string(duplicates_) +
                             " duplicates with " + std::to_string(counts->results) + " rows, not " +
                             std::to_string(traffic_.stored) + ", " + std::to_string(traffic_.duplicates) + ", " +
                             std::to_string(traffic_.results));
  }

private:
  // What duplicates of a share of 1 are duplicates of; not measured.
  void preload() {
    worker::Intake intake;
    for (const auto &message : traffic_.preload.messages) {
      intake.clear();
      intake.add(arrival_of(message));
      commit(intake.deliveries());
    }
    if (stored_ != traffic_.preload.deliveries) throw std::runtime_error("the preload was not stored");
    stored_ = 0;
  }

  const Traffic &traffic_;
  SystemClock clock_;
  SystemRandom random_;
  Handlers handlers_ = built_in_handlers();
  std::unique_ptr<DirectoryLock> lock_;
  std::unique_ptr<Store> store_;
  std::atomic<std::size_t> stored_{0};
  std::atomic<std::size_t> duplicates_{0};
};

} // namespace

Measured measure_guard(const Setting &setting) {
  const auto &messages = setting.traffic.measured.messages;
  worker::Intake intake;
  for (const auto &message : messages)
    intake.add(arrival_of(message));
  const auto deliveries = intake.deliveries();
  const std::size_t per_batch = messages.front().deliveries;
  Guard guard(setting);
  Measured measured = time_batches(messages.size(), setting.threads, [&] {
    return BatchWork(
        [&](std::size_t batch) { guard.commit(deliveries.subspan(batch * per_batch, messages[batch].deliveries)); });
  });
  guard.check();
  return measured;
}

Measured measure_guard_parsed(const Setting &setting) {
  const auto &messages = setting.traffic.measured.messages;
  Guard guard(setting);
  Measured measured = time_batches(messages.size(), setting.threads, [&] {
    return BatchWork([&, intake = std::make_shared<worker::Intake>()](std::size_t batch) {
      intake->clear();
      intake->add(arrival_of(messages[batch]), &guard.store());
      guard.commit(intake->deliveries(), intake->recalled().size());
    });
  });
  guard.check();
  return measured;
}

} // namespace onced::bench::limits
