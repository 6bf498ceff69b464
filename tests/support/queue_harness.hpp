#pragma once

#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "store/job_queue.hpp"
#include "support/store_harness.hpp"

namespace onced::testing {

// Jobs of the queued types of a QueueHarness.
[[nodiscard]] inline Bytes slow_job(std::string_view operation_id, std::int64_t number = 1,
                                    std::string_view effect_key = {}) {
  return job_bytes({.operation_id = operation_id, .numbers = {number}, .type = "slow", .effect_key = effect_key});
}
[[nodiscard]] inline Bytes pay_job(std::string_view operation_id, std::int64_t number = 1) {
  return job_bytes({.operation_id = operation_id, .numbers = {number}, .type = "pay"});
}
[[nodiscard]] inline Bytes key_of(std::string_view operation_id, std::string_view type = "slow") {
  return key_of_operation(type, operation_id).bytes;
}

[[nodiscard]] inline store::QueueEnding done(std::int64_t result) {
  return {.verdict = store::QueueVerdict::done, .result = integer_result(result)};
}
[[nodiscard]] inline store::QueueEnding refused(std::string error) {
  return {.verdict = store::QueueVerdict::refused, .error = std::move(error)};
}
[[nodiscard]] inline store::QueueEnding try_again(std::string error) {
  return {.verdict = store::QueueVerdict::try_again, .error = std::move(error)};
}
[[nodiscard]] inline store::QueueEnding unknown(std::string error) {
  return {.verdict = store::QueueVerdict::unknown, .error = std::move(error)};
}

// An open store with two queued types: `slow`, and the external `pay`, which `treasury` owns. An error is thrown.
struct QueueHarness : StoreHarness {
  QueueHarness() { begin(); }
  explicit QueueHarness(const std::filesystem::path &borrowed) : StoreHarness(borrowed) { begin(); }

  // A token that was never used.
  [[nodiscard]] FencingToken next_token() { return {.boot = boot_count(), .count = ++leases}; }
  [[nodiscard]] std::uint64_t boot_count() const { return boot_count_of(store->boot()); }

  [[nodiscard]] store::Received receive_key(BytesView key, const FencingToken &token, std::string_view type = "slow") {
    return value_of(store->queue().begin_receive(key, token, *handlers.queued(type)));
  }
  [[nodiscard]] store::Received receive(std::string_view operation_id, std::string_view type = "slow") {
    return receive_key(key_of(operation_id, type), next_token(), type);
  }
  [[nodiscard]] store::QueueSettled settle_key(BytesView key, const FencingToken &token,
                                               const store::QueueEnding &ending) {
    return value_of(store->queue().settle(key, token, ending));
  }
  // Under the token of its row.
  [[nodiscard]] store::QueueSettled settle(std::string_view operation_id, const store::QueueEnding &ending,
                                           std::string_view type = "slow") {
    return settle_key(key_of(operation_id, type), token(operation_id, type), ending);
  }
  [[nodiscard]] store::QueueSettled give_back(std::string_view operation_id) {
    return value_of(store->queue().give_back(key_of(operation_id), token(operation_id)));
  }
  [[nodiscard]] store::QueueRow queued(BytesView key) const {
    auto row = value_of(store->queue().find(key));
    if (!row) throw std::runtime_error("there is no row of the queue under " + to_hex(key));
    return std::move(*row);
  }
  // That of its row; zero where it has none.
  [[nodiscard]] FencingToken token_of(BytesView key) const {
    return value_of(store->queue().find(key)).value_or(store::QueueRow{}).token;
  }
  [[nodiscard]] FencingToken token(std::string_view operation_id, std::string_view type = "slow") const {
    return token_of(key_of(operation_id, type));
  }
  [[nodiscard]] Redriven redrive(const DeadLetterId &id) { return value_of(store->redrive(id, handlers, kim)); }

  // Everything in the store fits together, the counters included.
  void check_sound() const {
    const Verification found = value_of(store->verify());
    CHECK(found.problems == 0);
    for (const Problem &problem : found.first_problems)
      MESSAGE(problem.where << " " << to_hex(problem.key) << ": " << problem.what);
  }

  std::uint64_t leases = 0;

private:
  template <class T> static T value_of(Result<T> result) {
    if (!result) throw std::runtime_error(describe(result.error()));
    return std::move(*result);
  }
  void begin() {
    REQUIRE(handlers.add_queued({.type = "slow"}).has_value());
    REQUIRE(handlers.add_queued({.type = "pay", .external = true, .owner = "treasury"}).has_value());
    open();
  }
};

} // namespace onced::testing
