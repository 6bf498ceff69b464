#include "worker/handover.hpp"

#include <algorithm>

#include "onced/limits.hpp"
#include "wire/messages.hpp"

namespace onced::worker {
namespace {

// Whether a batch of so many messages takes no more: it has its bytes, or it is one large message.
bool is_complete(std::size_t messages, std::size_t cost) {
  return cost >= limits::batch_bytes_target || (messages == 1 && cost > limits::large_message_bytes);
}

} // namespace

std::size_t cost_of(const Arrival &arrival) {
  return arrival.frame.size() +
         wire::announced_deliveries(arrival.frame.to_string_view()) * limits::delivery_turn_bytes;
}

bool Handover::full() {
  const std::scoped_lock lock(mutex_);
  was_full_ =
      messages_ >= limits::handover_messages_max || bytes_ + limits::message_bytes_max > limits::handover_bytes_max;
  return was_full_;
}

void Handover::put(Arrival arrival) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  bytes_ += arrival.frame.size();
  ++messages_;
  arrival.put_at = clock_.monotonic();
  const int connection = arrival.connection;
  const auto [share, is_new] = shares_.try_emplace(connection);
  share->second.arrivals.push_back(std::move(arrival));
  if (is_new) newcomers_.push_back(connection);
}

void Handover::announce() {
  changed_.notify_one();
}

std::vector<Arrival> Handover::take() {
  std::vector<Arrival> taken;
  bool room = false;
  bool more = false;
  {
    std::unique_lock lock(mutex_);
    in_hand_.erase(std::this_thread::get_id());
    changed_.wait(lock, [&] { return closed_ || messages_ > 0; });
    taken = take_in_turns();
    for (const Arrival &arrival : taken) {
      const auto [oldest, first] = in_hand_.try_emplace(std::this_thread::get_id(), arrival.put_at);
      oldest->second = std::min(oldest->second, arrival.put_at);
    }
    room = was_full_ && !taken.empty();
    if (room) was_full_ = false;
    more = messages_ > 0;
  }
  if (more) announce();
  if (room) on_room_();
  return taken;
}

// Every turn gives credit, so the largest message is taken after a few rounds. Every other batch begins with the
// newcomers, so that those who always are newcomers leave the others half of the batches.
std::vector<Arrival> Handover::take_in_turns() {
  std::vector<Arrival> taken;
  std::size_t cost = 0;
  newcomers_first_ = !newcomers_first_;
  while (messages_ > 0 && !is_complete(taken.size(), cost)) {
    const bool newcomers = !newcomers_.empty() && (newcomers_first_ || !taken.empty() || turns_.empty());
    std::deque<int> &line = newcomers ? newcomers_ : turns_;
    const int connection = line.front();
    Share &share = shares_.find(connection)->second;
    if (!take_turn(share, taken, cost)) break;
    line.pop_front();
    if (share.arrivals.empty()) {
      shares_.erase(connection);
    } else {
      turns_.push_back(connection);
    }
  }
  return taken;
}

// False: its turn is not over; the next batch begins with it.
bool Handover::take_turn(Share &share, std::vector<Arrival> &taken, std::size_t &cost) {
  if (!share.in_its_turn) share.credit += limits::turn_bytes;
  share.in_its_turn = true;
  while (!share.arrivals.empty()) {
    Arrival &next = share.arrivals.front();
    const std::size_t next_cost = cost_of(next);
    if (next_cost > share.credit) break;
    if (!taken.empty() && (is_complete(taken.size(), cost) || next_cost > limits::large_message_bytes)) return false;
    share.credit -= next_cost;
    cost += next_cost;
    bytes_ -= next.frame.size();
    --messages_;
    taken.push_back(std::move(next));
    share.arrivals.pop_front();
  }
  share.in_its_turn = false;
  return true;
}

std::chrono::milliseconds Handover::oldest_age() const {
  const MonotonicTime now = clock_.monotonic();
  MonotonicTime oldest = now;
  const std::scoped_lock lock(mutex_);
  for (const auto &[thread, put_at] : in_hand_)
    oldest = std::min(oldest, put_at);
  for (const auto &[connection, share] : shares_)
    oldest = std::min(oldest, share.arrivals.front().put_at);
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - oldest);
}

void Handover::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

void Handover::abandon() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    shares_.clear();
    newcomers_.clear();
    turns_.clear();
    messages_ = 0;
    bytes_ = 0;
  }
  changed_.notify_all();
}

} // namespace onced::worker
