#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "job/relayed_job.hpp"
#include "store/relay_queue.hpp"
#include "support/queue_harness.hpp"

namespace onced::testing {

// A message as a handler writes it: a `sum` job, or of another type, without an operation id.
[[nodiscard]] inline Bytes message_bytes(std::int64_t number, std::string_view type = {},
                                         std::string_view traceparent = {}) {
  Bytes out;
  messagepack::Writer writer(out);
  writer.map(1U + (type.empty() ? 0U : 1U) + (traceparent.empty() ? 0U : 1U));
  writer.string("numbers").array(1).integer(number);
  if (!type.empty()) writer.string("type").string(type);
  if (!traceparent.empty()) writer.string("traceparent").string(traceparent);
  return out;
}
[[nodiscard]] inline RelayMessage message_to(std::string to, std::int64_t number) {
  return {.to = std::move(to), .job = message_bytes(number)};
}

// A job of the inline type `split`, whose result 0 sends on what `RelayHarness::messages` says.
[[nodiscard]] inline Bytes split_job(std::string_view operation_id, std::int64_t number = 1) {
  return job_bytes({.operation_id = operation_id, .numbers = {number}, .type = "split"});
}

// Counts what it is told.
class CountingObserver final : public StoreObserver {
public:
  void queued(BytesView, std::string_view, WallTime) override { ++queued_count; }
  void relayed() override { ++relayed_count; }

  std::atomic<unsigned> queued_count{0};
  std::atomic<unsigned> relayed_count{0};
};

// A QueueHarness whose jobs of type `split` send messages on.
struct RelayHarness : QueueHarness {
  RelayHarness() { begin(); }
  explicit RelayHarness(const std::filesystem::path &borrowed) : QueueHarness(borrowed) { begin(); }

  // The rows to one destination.
  [[nodiscard]] std::vector<store::RelayEntry> waiting(std::string_view to = "next") const {
    auto page = store->relay().page(to, {}, 10'000);
    if (!page) throw std::runtime_error(describe(page.error()));
    return std::move(page->entries);
  }
  [[nodiscard]] store::RelayBuried bury(BytesView key, Outcome outcome, std::string_view detail) {
    const auto buried = store->relay().bury(key, outcome, detail);
    if (!buried) throw std::runtime_error(describe(buried.error()));
    return *buried;
  }
  void remove(const std::vector<Bytes> &keys) {
    const auto removed = store->relay().remove(keys);
    REQUIRE(removed.has_value());
    CHECK(*removed);
  }

  std::vector<RelayMessage> messages{message_to("next", 1)};
  CountingObserver observer;

private:
  void begin() {
    const auto split = [this](const HandlerCall &) -> HandlerResult {
      return Done{.result = integer_result(0), .messages = messages};
    };
    REQUIRE(handlers.add_inline("split", split).has_value());
    options.observer = &observer;
    reopen();
  }
};

} // namespace onced::testing
