// One list in the code says why a delivery is answered `busy`: documents and details use its words. Not here: damaged
// rows, contention, and the tag of other bytes, whose details are tested where they come about.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "support/document.hpp"
#include "support/file_content.hpp"
#include "support/queue_harness.hpp"

namespace onced::testing {
namespace {

std::string line_of_busy(const std::string &document) {
  const auto at = document.find("| `busy` |");
  if (at == std::string::npos) return {};
  return document.substr(at, document.find('\n', at) - at);
}

TEST_CASE("the protocol document names every cause of busy") {
  const std::string protocol = line_of_busy(document_after("protocol.md", "table: outcomes"));
  for (const std::string_view cause : busy_causes) {
    CAPTURE(cause);
    CHECK(protocol.find(cause) != std::string::npos);
  }
}

bool is_known_cause(const Settlement &settlement) {
  CAPTURE(settlement.detail);
  CHECK(settlement.outcome == Outcome::busy);
  return std::any_of(busy_causes.begin(), busy_causes.end(),
                     [&](std::string_view cause) { return settlement.detail.starts_with(cause); });
}

TEST_CASE("the detail of what is busy at a cap begins with a cause of the list") {
  StoreHarness harness;
  harness.options.dead_letters_max = 1;
  harness.options.queue_jobs_max = 1;
  harness.options.relay_jobs_max = 1;
  REQUIRE(harness.handlers.add_queued({.type = "slow"}).has_value());
  const auto sends_on = [](const HandlerCall &) {
    Done done{.result = integer_result(1)};
    Bytes job;
    messagepack::Writer(job).map(1).string("numbers").array(0);
    done.messages.push_back({.to = "next", .job = job});
    return done;
  };
  REQUIRE(harness.handlers.add_inline("sends", sends_on).has_value());
  harness.open();
  for (const char *id : {"a", "b"}) {
    const bool full = std::string(id) == "b";
    const auto letter = harness.commit_one(Bytes("no job ") + id);
    const auto queued = harness.commit_one(slow_job(id));
    const auto relayed = harness.commit_one(job_bytes({.operation_id = id, .numbers = {1}, .type = "sends"}));
    if (!full) CHECK(relayed.outcome == Outcome::stored);
    for (const Settlement *settlement : {&letter, &queued, &relayed})
      if (full) CHECK(is_known_cause(*settlement));
  }
}

} // namespace
} // namespace onced::testing
