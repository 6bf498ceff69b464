// Who is heard when many ask. What the answers say is tested with the wire and through real processes.
#include <doctest/doctest.h>

#include <thread>

#include "base/messagepack.hpp"
#include "onced/limits.hpp"
#include "support/store_harness.hpp"
#include "worker/query_threads.hpp"

using namespace onced;
using namespace onced::testing;
using namespace onced::worker;

namespace {

Bytes request_of(std::string_view name) {
  Bytes request;
  messagepack::Writer(request).map(2).string("query").string(name).string("operation_id").string("a");
  return request;
}

// The peer of the next answer; empty: there was none in time.
Bytes next_answer(Outgoing &outgoing) {
  static std::vector<Bytes> peers;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (peers.empty() && std::chrono::steady_clock::now() < deadline) {
    for (const auto &frames : outgoing.take()) {
      for (const OutgoingFrame &frame : frames)
        peers.push_back(std::get<PeerAddress>(frame.to).routing_id);
    }
    std::this_thread::yield();
  }
  if (peers.empty()) return {};
  const Bytes first = peers.front();
  peers.erase(peers.begin());
  return first;
}

} // namespace

TEST_CASE("who counts keeps nobody from reading a row and has five queries at a time") {
  ScratchDirectory directory;
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
  const runner::Schedule schedule(handlers, 1, clock, random, false, 1);
  QueryThreads queries(keeper, handlers, counters, handover, outgoing, schedule);

  // Nobody counts, and a row can be read all the same.
  queries.ask({.control = false, .routing_id = "counts"}, request_of("count"));
  queries.ask({.control = false, .routing_id = "gets"}, request_of("get"));
  std::thread reads([&] { queries.run(QueryLane::reads); });
  CHECK(next_answer(outgoing) == "gets");
  // Of one connection four wait beside the one that is answered; the next is refused at once.
  for (std::size_t asked = 1; asked < limits::queries_a_connection_waiting_max; ++asked)
    queries.ask({.control = false, .routing_id = "counts"}, request_of("count"));
  CHECK(outgoing.take().empty());
  queries.ask({.control = false, .routing_id = "counts"}, request_of("get"));
  CHECK(next_answer(outgoing) == "counts");
  std::thread scans([&] { queries.run(QueryLane::scans); });
  for (std::size_t left = limits::queries_a_connection_waiting_max; left > 0; --left)
    CHECK(next_answer(outgoing) == "counts");
  queries.close();
  reads.join();
  scans.join();
  keeper.close();
}
