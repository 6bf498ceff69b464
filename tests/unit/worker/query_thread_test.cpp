// Who is heard when many ask. What the answers say is tested with the wire and through real processes.
#include <doctest/doctest.h>

#include <thread>

#include "job/messagepack.hpp"
#include "onced/limits.hpp"
#include "support/store_harness.hpp"
#include "worker/query_thread.hpp"

using namespace onced;
using namespace onced::testing;
using namespace onced::worker;

namespace {

Bytes count_request() {
  Bytes request;
  messagepack::Writer(request).map(1).string("query").string("count");
  return request;
}

// The frames that were put, as "control" or "network", in order.
std::vector<std::string> addressees(Outgoing &outgoing) {
  std::vector<std::string> names;
  for (const auto &frames : outgoing.take()) {
    for (const OutgoingFrame &frame : frames)
      names.emplace_back(std::get<PeerAddress>(frame.to).control ? "control" : "network");
  }
  return names;
}

} // namespace

TEST_CASE("queries from the network leave places for the operator whose query is answered first") {
  TempDirectory directory;
  ManualClock clock;
  SeededRandom random(3);
  SilentLog log;
  StoreOptions options;
  options.directory = directory.path();
  StoreKeeper keeper(
      options, clock, random, log, [] {}, [](const Error &) {});
  REQUIRE(keeper.open().has_value());
  const Handlers handlers = built_in_handlers();
  Counters counters;
  Outgoing outgoing([] {});
  const Handover handover(clock, [] {});
  QueryThread queries(keeper, handlers, counters, handover, outgoing, nullptr);

  constexpr std::size_t too_many = 5;
  for (std::size_t asked = 0; asked < limits::network_queries_waiting_max + too_many; ++asked)
    queries.ask({.control = false, .routing_id = "stranger"}, count_request());
  CHECK(addressees(outgoing) == std::vector<std::string>(too_many, "network")); // refused at once
  queries.ask({.control = true, .routing_id = "operator"}, count_request());
  CHECK(addressees(outgoing).empty());

  std::thread thread([&] { queries.run(); });
  std::vector<std::string> answered;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (answered.size() < limits::network_queries_waiting_max + 1 && std::chrono::steady_clock::now() < deadline) {
    for (auto &name : addressees(outgoing))
      answered.push_back(std::move(name));
    std::this_thread::yield();
  }
  queries.close();
  thread.join();
  keeper.close();
  REQUIRE(answered.size() == limits::network_queries_waiting_max + 1);
  CHECK(answered.front() == "control");
}
