#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sender/redelivery.hpp"

namespace onced::testing::redelivery {

// What its users write without `onced::`.
using onced::BootId;
using onced::MonotonicTime;
using onced::Outcome;
using onced::Redelivery;
using onced::RedeliveryOptions;
using onced::Sequence;
using onced::Tag;
using Effect = Redelivery::ReplyEffect;

using Numbers = std::vector<std::uint64_t>;

inline constexpr std::size_t unbounded = 1'000'000;
inline constexpr MonotonicTime start{std::chrono::hours{1000}};

inline BootId boot(std::uint8_t number) {
  BootId id;
  id.bytes[7] = number;
  return id;
}

inline Tag tag(std::uint64_t number) {
  Tag id;
  for (std::size_t byte = 0; byte < Tag::size; ++byte)
    id.bytes[byte] = static_cast<std::uint8_t>(number >> (8 * byte));
  return id;
}

inline WallTime issued(std::uint64_t number) {
  return WallTime(std::chrono::microseconds(1'000'000 + number));
}

// A sender's jobs, and a hand on its clock. Job n has tag n.
struct Bench {
  explicit Bench(const RedeliveryOptions &options = {}, bool greeted = true) : redelivery(options, random) {
    if (greeted) redelivery.on_greeting(boot(1), now);
  }

  void add(std::size_t jobs, std::size_t bytes_each = 10) {
    for (std::size_t job = 0; job < jobs; ++job) {
      const std::uint64_t number = ++added;
      const Sequence sequence = redelivery.add(std::string(bytes_each, 'j'), tag(number), issued(number));
      REQUIRE(number_of(sequence) == number);
    }
  }

  std::vector<Redelivery::DueJob> due(std::size_t jobs_max = unbounded, std::size_t bytes_max = unbounded) {
    return redelivery.due(now, jobs_max, bytes_max);
  }

  Numbers due_numbers() {
    Numbers numbers;
    for (const auto &job : due())
      numbers.push_back(number_of(job.sequence));
    return numbers;
  }

  // Sends all that is due and returns their sequences.
  Numbers send() {
    Numbers numbers = due_numbers();
    redelivery.sent(due(), now);
    return numbers;
  }

  Redelivery::ReplyResult reply(std::uint64_t number, Outcome outcome) { return reply(number, outcome, tag(number)); }
  Redelivery::ReplyResult reply(std::uint64_t number, Outcome outcome, const Tag &echoed) {
    return redelivery.on_reply({Sequence{number}, echoed, outcome, "r", "d", Durability::page_cache}, now);
  }

  std::optional<MonotonicTime> next_due() { return redelivery.next_due(now); }

  SeededRandom random{1};
  MonotonicTime now = start;
  Redelivery redelivery;
  std::uint64_t added = 0;
};

inline RedeliveryOptions window_of(std::size_t jobs, std::size_t bytes = unbounded) {
  RedeliveryOptions options;
  options.window_jobs_max = jobs;
  options.window_bytes_max = bytes;
  return options;
}

} // namespace onced::testing::redelivery
