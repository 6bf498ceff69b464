#include "drive.hpp"

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "held_signals.hpp"

namespace onced::bench::peers {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

nanoseconds client_cpu() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

void stop_where_asked() {
  if (HeldSignals::pending()) throw std::runtime_error("interrupted");
}

// How far a run is, for its threads to wait on.
class Progress {
public:
  explicit Progress(std::size_t deliveries) : deliveries_(deliveries) {}

  // The first of `count` deliveries that nobody else has.
  std::size_t claim(std::size_t count) {
    const std::lock_guard lock(mutex_);
    return std::exchange(claimed_, failure_ ? deliveries_ : std::min(deliveries_, claimed_ + count));
  }
  // Waits until `count` more may be unanswered. False: the run failed.
  bool wait_for_room(std::size_t count, std::size_t in_flight) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return failure_ || added_ + count - settled_ <= in_flight; });
    return !failure_;
  }
  void add(std::size_t count) {
    const std::lock_guard lock(mutex_);
    added_ += count;
    work_.notify_one(); // who is not waiting looks again by itself
  }
  // Waits until there may be something in the queue. False: all is taken, or the run failed.
  bool wait_for_work() {
    std::unique_lock lock(mutex_);
    work_.wait(lock, [&] { return failure_ || added_ > taken_ || taken_ == deliveries_; });
    return !failure_ && taken_ < deliveries_;
  }
  void take(std::size_t count) {
    const std::lock_guard lock(mutex_);
    taken_ += count;
    if (taken_ == deliveries_) work_.notify_all();
  }
  void settle(std::size_t count, const Tally &tally) {
    const std::lock_guard lock(mutex_);
    settled_ += count;
    tally_.add(tally);
    last_ = Clock::now();
    room_.notify_one(); // there is one producer
  }
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    room_.notify_all();
    work_.notify_all();
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  [[nodiscard]] const Tally &tally() const { return tally_; }
  [[nodiscard]] Clock::time_point last() const { return last_; }

private:
  std::size_t deliveries_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable work_;
  std::size_t claimed_ = 0; // client-fed: begun
  std::size_t added_ = 0;   // to the queue
  std::size_t taken_ = 0;   // from the queue
  std::size_t settled_ = 0;
  Tally tally_;
  Clock::time_point last_;
  std::exception_ptr failure_;
};

class Drive {
public:
  Drive(std::span<const BytesView> deliveries, const Settings &settings, bool take_waits)
      : deliveries_(deliveries), settings_(settings), take_waits_(take_waits), progress_(deliveries.size()),
        began_(deliveries.size()), latencies_(deliveries.size()) {}

  void feed(Consumer &consumer);
  void produce(Producer &producer);
  void consume(Consumer &consumer);
  // Runs a thread's work; what it throws ends the run.
  template <class Work> void guard(Work work) {
    try {
      work();
    } catch (...) {
      progress_.fail(std::current_exception());
    }
  }

  [[nodiscard]] const Progress &progress() const { return progress_; }
  [[nodiscard]] nanoseconds quantile(double share);

private:
  void settle(Consumer &consumer, Batch &batch, bool has_queue);

  std::span<const BytesView> deliveries_;
  const Settings &settings_;
  bool take_waits_;
  Progress progress_;
  std::vector<Clock::time_point> began_; // of each delivery; written before it is in the queue
  std::vector<nanoseconds> latencies_;   // of each delivery; written by who settles it
};

void Drive::settle(Consumer &consumer, Batch &batch, bool has_queue) {
  batch.close();
  if (settings_.look_first) consumer.look(batch.offers());
  const auto open = batch.open_offers();
  batch.run_handlers(open);
  if (!open.empty() || has_queue) consumer.store(open);
}

void Drive::feed(Consumer &consumer) {
  Batch batch;
  while (true) {
    const std::size_t first = progress_.claim(settings_.batch);
    const std::size_t end = std::min(first + settings_.batch, deliveries_.size());
    if (first == end) return;
    stop_where_asked();
    const auto start = Clock::now();
    batch.clear();
    for (std::size_t at = first; at < end; ++at)
      batch.add(deliveries_[at]);
    settle(consumer, batch, false);
    std::fill(latencies_.begin() + static_cast<std::ptrdiff_t>(first),
              latencies_.begin() + static_cast<std::ptrdiff_t>(end), Clock::now() - start);
    progress_.settle(end - first, batch.answers());
  }
}

void Drive::produce(Producer &producer) {
  const std::size_t batch = std::min(settings_.batch, settings_.in_flight);
  for (std::size_t first = 0; first < deliveries_.size(); first += batch) {
    const std::size_t count = std::min(batch, deliveries_.size() - first);
    if (!progress_.wait_for_room(count, settings_.in_flight)) return;
    stop_where_asked();
    std::fill_n(began_.begin() + static_cast<std::ptrdiff_t>(first), count, Clock::now());
    if (take_waits_) progress_.add(count);
    producer.add(first, deliveries_.subspan(first, count));
    if (!take_waits_) progress_.add(count);
  }
  producer.finish();
}

void Drive::consume(Consumer &consumer) {
  Batch batch;
  std::vector<Taken> taken;
  while (progress_.wait_for_work()) {
    consumer.take(settings_.batch, taken);
    if (taken.empty()) continue;
    progress_.take(taken.size());
    batch.clear();
    for (const Taken &delivery : taken)
      batch.add(delivery.job);
    settle(consumer, batch, true);
    const auto now = Clock::now();
    for (const Taken &delivery : taken)
      latencies_.at(delivery.delivery) = now - began_.at(delivery.delivery);
    progress_.settle(taken.size(), batch.answers());
  }
}

nanoseconds Drive::quantile(double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(latencies_.size() - 1));
  std::nth_element(latencies_.begin(), latencies_.begin() + at, latencies_.end());
  return latencies_[static_cast<std::size_t>(at)];
}

} // namespace

Measured drive(Peer &peer, std::span<const BytesView> deliveries, const Settings &settings) {
  // Connections stay open until both readings of the server's time: PostgreSQL has a process for each.
  const std::unique_ptr<Producer> producer = peer.connect_producer();
  std::vector<std::unique_ptr<Consumer>> consumers(settings.connections);
  for (auto &consumer : consumers)
    consumer = peer.connect();
  Drive run(deliveries, settings, peer.take_waits());

  const auto server_before = peer.server_cpu();
  const auto client_before = client_cpu();
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  threads.reserve(consumers.size());
  for (auto &consumer : consumers) {
    threads.emplace_back([&run, &consumer, fed = producer == nullptr] {
      run.guard([&] { fed ? run.feed(*consumer) : run.consume(*consumer); });
    });
  }
  if (producer != nullptr) run.guard([&] { run.produce(*producer); });
  for (std::thread &thread : threads)
    thread.join();
  Measured measured;
  measured.client_cpu = client_cpu() - client_before;
  measured.server_cpu = peer.server_cpu() - server_before;
  run.progress().rethrow();
  measured.elapsed = run.progress().last() - start;
  measured.tally = run.progress().tally();
  measured.latency_p50 = run.quantile(0.50);
  measured.latency_p99 = run.quantile(0.99);
  measured.latency_p999 = run.quantile(0.999);
  return measured;
}

} // namespace onced::bench::peers
