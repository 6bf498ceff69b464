#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "runner/leases.hpp"

// The leases, and a hand on their clock.
namespace onced::testing::leases {

using namespace std::chrono_literals;
using onced::MonotonicTime;
using onced::text_of;
using onced::runner::FencingToken;
using onced::runner::LeaseOptions;
using onced::runner::Leases;
using Added = Leases::Added;
using Obstacle = Leases::Obstacle;
using Keys = std::vector<std::string>;

inline const MonotonicTime start{1000h};
inline constexpr std::uint64_t boot = 7;

// One type "t" with one lease at once, all of whose figures differ.
inline LeaseOptions one_type(std::string name = "t") {
  return {.type = std::move(name),
          .concurrency = 1,
          .visibility_timeout = 30s,
          .max_receive_count = 3,
          .backoff = 1s,
          .backoff_max = 3s,
          .jobs_max = 100};
}

inline LeaseOptions with_concurrency(std::size_t concurrency) {
  LeaseOptions options = one_type();
  options.concurrency = concurrency;
  return options;
}

inline LeaseOptions with_places(std::size_t jobs_max) {
  LeaseOptions options = one_type();
  options.jobs_max = jobs_max;
  return options;
}

// The leases, and a hand on their clock.
struct Bench {
  explicit Bench(std::vector<LeaseOptions> of_types = {one_type()})
      : types(std::move(of_types)), leases(types, boot, random) {}

  Added add(std::string_view key, std::string_view type = "t", std::uint32_t receives = 0) {
    return leases.add(key, type, receives, now, now);
  }

  // Takes and starts one job, which must be due.
  Leases::HandOver run() {
    auto taken = take();
    REQUIRE(leases.started(taken.token, now));
    return taken;
  }
  Leases::HandOver take() {
    auto taken = try_take();
    REQUIRE(taken.has_value());
    return *taken;
  }
  bool nothing_to_take() { return !try_take().has_value(); }
  // Of the first type that gives one.
  std::optional<Leases::HandOver> try_take() {
    for (const LeaseOptions &type : types) {
      if (auto taken = leases.take(type.type, now)) return taken;
    }
    return std::nullopt;
  }

  // The keys of all that can be run at once, in their order.
  Keys run_all() {
    Keys keys;
    for (auto taken = try_take(); taken; taken = try_take()) {
      REQUIRE(leases.started(taken->token, now));
      keys.push_back(taken->key);
    }
    return keys;
  }

  bool forget(const FencingToken &token) { return leases.forget(token); }
  bool retry(const FencingToken &token) { return leases.retry(token, now); }

  // Lets time pass until something is due, and returns how long that took.
  MonotonicTime::duration wait() {
    const auto next = leases.next_due(now);
    REQUIRE(next.has_value());
    const auto waited = *next - now;
    now = *next;
    return waited;
  }

  onced::SeededRandom random{1};
  MonotonicTime now = start;
  std::vector<LeaseOptions> types;
  Leases leases;
};

inline Leases::Counters counted(std::size_t waiting, std::size_t starting, std::size_t running,
                                bool more_in_store = false) {
  return {waiting, starting, running, more_in_store};
}

} // namespace onced::testing::leases
