#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "disk/trial.hpp"
#include "onced/outcome.hpp"
#include "onced/store.hpp"
#include "support/job_bytes.hpp"

namespace onced::testing {

// A job of the workload, or bytes that are none. Its numbers are summed, by this model too, without the product's code.
struct Offer {
  std::string operation_id;
  std::vector<std::int64_t> numbers;
  std::string type = "sum";
  Bytes poison = {}; // not empty: these bytes, which are no job

  [[nodiscard]] Bytes bytes() const {
    if (!poison.empty()) return poison;
    return job_bytes({.operation_id = operation_id, .numbers = numbers, .type = type});
  }
  // Tells offers of this workload apart, and is short.
  [[nodiscard]] std::string name() const {
    if (!poison.empty()) return std::to_string(poison.size()) + " bytes of " + poison.substr(0, 1);
    std::string text = operation_id + ":";
    for (const std::int64_t number : numbers)
      text += " " + std::to_string(number);
    return text;
  }
};

// What there is in a store, in a form of its own: two stores with the same rows are equal.
struct Rows {
  struct Letter {
    std::uint64_t deliveries = 0;
    std::uint64_t redrives = 0;
    auto operator<=>(const Letter &) const = default;
  };
  using LetterName = std::pair<Outcome, std::string>; // its reason, and the name of its offer

  std::map<std::string, Bytes> results; // canonical, by operation id
  std::map<LetterName, Letter> letters;
  std::uint64_t changes = 0; // in the audit
  bool operator==(const Rows &) const = default;

  [[nodiscard]] std::string describe() const;
};

struct Action {
  enum class Kind : std::uint8_t { open, commit, redrive, purge };
  Kind kind = Kind::open;
  std::vector<Offer> offers = {};    // commit: a batch. redrive, purge: one, whose dead letter it is
  Outcome reason = Outcome::invalid; // redrive, purge: of that dead letter
};

// The answer to one offer.
struct Answer {
  Outcome outcome = Outcome::busy;
  Bytes result = {};
  bool operator==(const Answer &) const = default;
};

// Does to `rows` what the action does to a store, and says what the store must answer: an answer for each offer of a
// commit, one for a redrive, none else.
std::vector<Answer> apply(const Action &action, Rows &rows);

// The actions, the same every time.
[[nodiscard]] const std::vector<Action> &store_actions();
[[nodiscard]] std::vector<Part> parts_of_store_actions();

// The type that a commit does not know and a redrive does.
inline constexpr const char *late_type = "late";

} // namespace onced::testing
