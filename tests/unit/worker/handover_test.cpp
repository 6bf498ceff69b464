// The bounded hand-over from the gateway to the worker threads.
#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "support/store_harness.hpp"
#include "wire/messages.hpp"
#include "worker/handover.hpp"

namespace onced::testing {
namespace {

using namespace std::chrono_literals;
using worker::Arrival;
using worker::cost_of;
using worker::Handover;

Arrival text_arrival(const std::string &text) {
  Arrival made;
  made.frame.rebuild(text.data(), text.size());
  return made;
}
Arrival arrival_of(std::size_t bytes) {
  Arrival made;
  const Bytes zeros(bytes, '\0');
  made.frame.rebuild(zeros.data(), zeros.size());
  return made;
}
std::vector<std::string> texts_of(const std::vector<Arrival> &arrivals) {
  std::vector<std::string> texts;
  for (const Arrival &arrival : arrivals)
    texts.push_back(arrival.frame.to_string());
  return texts;
}

void nothing() {}

TEST_CASE("what was put is taken at once and in order") {
  SystemClock clock;
  Handover handover(clock, nothing);
  handover.put(text_arrival("a"));
  Arrival multipart = text_arrival("b");
  multipart.multipart = true;
  handover.put(std::move(multipart));
  handover.put(text_arrival(""));
  const auto taken = handover.take();
  CHECK(texts_of(taken) == std::vector<std::string>{"a", "b", ""});
  CHECK_FALSE(taken[0].multipart);
  CHECK(taken[1].multipart);
}

TEST_CASE("the hand-over is full at its limit of messages") {
  SystemClock clock;
  Handover handover(clock, nothing);
  for (std::size_t put = 0; put < limits::handover_messages_max; ++put) {
    REQUIRE_FALSE(handover.full());
    handover.put(text_arrival(""));
  }
  CHECK(handover.full());
}

TEST_CASE("the hand-over is full when one more message might exceed its limit of bytes") {
  SystemClock clock;
  Handover handover(clock, nothing);
  std::size_t bytes = 0;
  while (!handover.full()) {
    handover.put(arrival_of(limits::message_bytes_max));
    bytes += limits::message_bytes_max;
    REQUIRE(bytes <= limits::handover_bytes_max);
  }
  CHECK(bytes + limits::message_bytes_max > limits::handover_bytes_max);
}

// Of so many bytes, over this connection.
Arrival arrival_over(int connection, std::size_t bytes) {
  Arrival made = arrival_of(bytes);
  made.connection = connection;
  return made;
}

// The connections of what one take gives, in order.
std::string connections_of(const std::vector<Arrival> &arrivals) {
  std::string connections;
  for (const Arrival &arrival : arrivals)
    connections += std::to_string(arrival.connection);
  return connections;
}

constexpr std::size_t large_bytes = 1024 * 1024;

TEST_CASE("one take gives a batch of bytes and leaves the rest for the next") {
  SystemClock clock;
  Handover handover(clock, nothing);
  constexpr std::size_t bytes = 100'000;
  constexpr std::size_t messages = 100;
  for (std::size_t put = 0; put < messages; ++put)
    handover.put(arrival_of(bytes));
  const std::size_t taken = handover.take().size();
  CHECK(taken >= limits::batch_bytes_target / (bytes + limits::delivery_turn_bytes));
  CHECK(taken <= limits::batch_bytes_target / bytes + 1);
  CHECK(handover.take().size() >= 1);
}

TEST_CASE("a large message is a batch by itself") {
  SystemClock clock;
  Handover handover(clock, nothing);
  handover.put(arrival_over(1, 10));
  handover.put(arrival_over(2, large_bytes));
  handover.put(arrival_over(2, large_bytes));
  handover.put(arrival_over(3, 10));
  CHECK(connections_of(handover.take()) == "13");
  CHECK(connections_of(handover.take()) == "2");
  CHECK(connections_of(handover.take()) == "2");
}

TEST_CASE("a message that announces thousands of deliveries is large") {
  wire::BatchEntry entry;
  entry.job = "x";
  Bytes message;
  wire::encode_batch(SenderId{}, std::vector<wire::BatchEntry>(limits::deliveries_per_message_max, entry), message);
  SystemClock clock;
  Handover handover(clock, nothing);
  handover.put(text_arrival("a"));
  handover.put(text_arrival(message));
  CHECK(handover.take().size() == 1);
  CHECK(handover.take().size() == 1);
}

TEST_CASE("beside a flood of large messages a small one is taken after one of them at most") {
  SystemClock clock;
  Handover handover(clock, nothing);
  constexpr int floods = 8;
  for (int round = 0, connection = 0; round < 100; ++round) {
    for (; !handover.full(); connection = (connection + 1) % floods)
      handover.put(arrival_over(connection, large_bytes));
    handover.put(arrival_over(9, 10));
    const std::string before = connections_of(handover.take());
    CHECK(before.size() == 1); // the small one, or one of the flood
    if (before != "9") CHECK(connections_of(handover.take()) == "9");
  }
}

TEST_CASE("a sender that always has something small waiting does not keep a large message from its turn") {
  SystemClock clock;
  Handover handover(clock, nothing);
  handover.put(arrival_over(1, large_bytes));
  int takes = 0;
  for (bool large = false; !large; ++takes) {
    REQUIRE(takes < 64);
    for (int connection = 2; connection < 5; ++connection)
      handover.put(arrival_over(connection, 1000));
    large = connections_of(handover.take()).find('1') != std::string::npos;
  }
}

TEST_CASE(
    "connections that always have something waiting are given the same bytes whatever the size of their messages") {
  SystemClock clock;
  Handover handover(clock, nothing);
  std::map<int, std::size_t> waiting;
  std::map<int, std::size_t> taken;
  const std::map<int, std::size_t> sizes{{1, large_bytes}, {2, 100'000}, {3, 2'000}};
  for (int take = 0; take < 600; ++take) {
    for (const auto &[connection, bytes] : sizes) {
      for (; waiting[connection] < 2 * large_bytes; waiting[connection] += bytes)
        handover.put(arrival_over(connection, bytes));
    }
    for (const Arrival &arrival : handover.take()) {
      waiting[arrival.connection] -= arrival.frame.size();
      taken[arrival.connection] += cost_of(arrival);
    }
  }
  CHECK(taken[2] < taken[1] + 4 * large_bytes);
  CHECK(taken[1] < taken[2] + 4 * large_bytes);
  CHECK(taken[3] < taken[1] + 4 * large_bytes);
  CHECK(taken[1] < taken[3] + 4 * large_bytes);
}

TEST_CASE("the oldest message counts while it waits and until its thread comes back") {
  ManualClock clock;
  Handover handover(clock, nothing);
  CHECK(handover.oldest_age() == 0ms);
  handover.put(text_arrival("a"));
  clock.now += 300ms;
  handover.put(text_arrival("b"));
  CHECK(handover.oldest_age() == 300ms);
  CHECK(handover.take().size() == 2);
  handover.put(text_arrival("c"));
  clock.now += 200ms;
  CHECK(handover.oldest_age() == 500ms); // in hand
  CHECK(handover.take().size() == 1);
  CHECK(handover.oldest_age() == 200ms);
  handover.close();
  CHECK(handover.take().empty());
  CHECK(handover.oldest_age() == 0ms);
}

TEST_CASE("room is announced once and only after the hand-over was found full") {
  int announced = 0;
  SystemClock clock;
  Handover handover(clock, [&] { ++announced; });
  handover.put(text_arrival("a"));
  REQUIRE_FALSE(handover.full());
  CHECK(handover.take().size() == 1);
  CHECK(announced == 0);

  for (std::size_t put = 0; put < limits::handover_messages_max; ++put)
    handover.put(text_arrival(""));
  REQUIRE(handover.full());
  CHECK(handover.take().size() == limits::handover_messages_max);
  CHECK(announced == 1);

  handover.put(text_arrival("b"));
  CHECK(handover.take().size() == 1);
  CHECK(announced == 1);
  CHECK_FALSE(handover.full());
}

TEST_CASE("after close what is there is still taken and then nothing") {
  SystemClock clock;
  Handover handover(clock, nothing);
  handover.put(text_arrival("before"));
  handover.close();
  handover.put(text_arrival("after"));
  CHECK(texts_of(handover.take()) == std::vector<std::string>{"before"});
  CHECK(handover.take().empty());
  CHECK(handover.take().empty());
}

TEST_CASE("after abandon there is nothing more") {
  SystemClock clock;
  Handover handover(clock, nothing);
  handover.put(text_arrival("before"));
  handover.abandon();
  handover.put(text_arrival("after"));
  CHECK(handover.take().empty());
}

TEST_CASE("a thread that waits is woken by a message and by close and by abandon") {
  for (const auto wake :
       {+[](Handover &handover) {
          handover.put(text_arrival("x"));
          handover.announce();
        },
        +[](Handover &handover) { handover.close(); }, +[](Handover &handover) { handover.abandon(); }}) {
    SystemClock clock;
    Handover handover(clock, nothing);
    std::thread waiting([&] { static_cast<void>(handover.take()); });
    wake(handover);
    waiting.join(); // or the test times out
  }
}

TEST_CASE("one announcement wakes as many threads as there are batches") {
  SystemClock clock;
  Handover handover(clock, nothing);
  constexpr std::size_t all = 3; // each is a batch
  std::atomic<std::size_t> taken{0};
  std::vector<std::thread> takers;
  for (int thread = 0; thread < 3; ++thread) {
    takers.emplace_back([&] { taken += handover.take().size(); });
  }
  for (std::size_t put = 0; put < all; ++put)
    handover.put(arrival_of(limits::message_bytes_max));
  handover.announce();
  const MonotonicTime deadline = clock.monotonic() + std::chrono::seconds(30);
  while (taken < all && clock.monotonic() < deadline)
    std::this_thread::yield();
  CHECK(taken == all);
  handover.close();
  for (std::thread &taker : takers)
    taker.join();
}

TEST_CASE("several threads take every message once") {
  constexpr int messages = 20'000;
  constexpr std::size_t threads = 4;
  SystemClock clock;
  Handover handover(clock, nothing);
  std::vector<std::vector<std::string>> taken(threads);
  std::vector<std::thread> takers;
  for (auto &mine : taken) {
    takers.emplace_back([&handover, &mine] {
      for (auto arrivals = handover.take(); !arrivals.empty(); arrivals = handover.take()) {
        for (const std::string &text : texts_of(arrivals))
          mine.push_back(text);
      }
    });
  }
  for (int number = 0; number < messages;) {
    if (handover.full()) {
      std::this_thread::yield();
      continue;
    }
    handover.put(text_arrival(std::to_string(number++)));
    if (number % 7 == 0) handover.announce();
  }
  handover.close();
  for (std::thread &taker : takers)
    taker.join();
  std::vector<int> numbers;
  for (const auto &mine : taken) {
    for (const std::string &text : mine)
      numbers.push_back(std::stoi(text));
  }
  std::sort(numbers.begin(), numbers.end());
  REQUIRE(numbers.size() == messages);
  for (int number = 0; number < messages; ++number)
    REQUIRE(numbers[static_cast<std::size_t>(number)] == number);
}

} // namespace
} // namespace onced::testing
