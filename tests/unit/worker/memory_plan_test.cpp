// How a worker shares out its memory. That it keeps to it is measured by tests/contract/backpressure_test.cpp.
#include "worker/memory_plan.hpp"

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "onced/worker.hpp"

namespace onced::testing {
namespace {

using worker::MemoryPlan;
using worker::plan_memory;

constexpr std::size_t mebibyte = 1024 * 1024;

// The formula of docs/operations.md.
std::size_t bytes_of(const MemoryPlan &plan, unsigned senders, unsigned threads) {
  const auto waiting = static_cast<std::size_t>(plan.receive_high_water_messages);
  const std::size_t sender = (waiting + 1) * limits::message_bytes_max + limits::unread_bytes_max;
  return limits::process_bytes + plan.committed_cache_bytes + plan.block_cache_bytes + limits::handover_bytes_max +
         2 * limits::outgoing_bytes_max + threads * limits::worker_thread_bytes + senders * sender;
}

TEST_CASE("the defaults plan 64 senders into 512 MiB with messages that wait") {
  const WorkerOptions defaults;
  const auto plan = plan_memory(defaults.memory_bytes, defaults.senders, {.batch = defaults.threads});
  REQUIRE(plan.has_value());
  CHECK(defaults.memory_bytes == 512 * mebibyte);
  CHECK(defaults.senders == 64);
  CHECK(plan->block_cache_bytes == 64 * mebibyte);
  CHECK(plan->committed_cache_bytes == 32 * mebibyte);
  CHECK(plan->receive_high_water_messages >= 2);
}

TEST_CASE("no plan exceeds its memory and none wastes a message for each sender") {
  for (const std::size_t memory : {256 * mebibyte, 512 * mebibyte, 1000 * mebibyte, 4096 * mebibyte}) {
    for (const unsigned senders : {1U, 7U, 64U, 300U, 4000U}) {
      for (const unsigned threads : {1U, 2U, 8U}) {
        CAPTURE(memory);
        CAPTURE(senders);
        CAPTURE(threads);
        auto plan = plan_memory(memory, senders, {.batch = threads});
        if (!plan) continue;
        CHECK(plan->receive_high_water_messages >= 1);
        CHECK(bytes_of(*plan, senders, threads) <= memory);
        if (plan->receive_high_water_messages == limits::receive_high_water_messages_max) continue;
        ++plan->receive_high_water_messages;
        CHECK(bytes_of(*plan, senders, threads) > memory);
      }
    }
  }
}

TEST_CASE("memory that gives no sender a message is refused with what would be enough") {
  const auto refused = plan_memory(512 * mebibyte, 1000, {.batch = 2});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::usage);
  CHECK(refused.error().remedy.find("--memory") != std::string::npos);
  const auto needed = std::stoul(refused.error().remedy.substr(std::string("give ").size())) * mebibyte;
  CHECK(plan_memory(needed, 1000, {.batch = 2}).has_value());
  CHECK_FALSE(plan_memory(needed - 2 * mebibyte, 1000, {.batch = 2}).has_value());
}

} // namespace
} // namespace onced::testing
