#include "disk/store_model.hpp"

namespace onced::testing {
namespace {

constexpr std::int64_t largest = INT64_MAX;

// Nothing where the sum is beyond 64 bits; no offer of the workload overflows downwards.
std::optional<std::int64_t> sum_of(const std::vector<std::int64_t> &numbers) {
  std::int64_t sum = 0;
  for (const std::int64_t number : numbers) {
    if (number > 0 && sum > largest - number) return std::nullopt;
    sum += number;
  }
  return sum;
}

// As a job is judged: its bytes, then its key, then its type, then its numbers. `known` are results by offers' names.
Answer judge(const Offer &offer, bool knows_late, const Rows &rows) {
  if (!offer.poison.empty()) return {.outcome = Outcome::invalid};
  const auto sum = sum_of(offer.numbers);
  if (const auto row = rows.results.find(offer.operation_id); row != rows.results.end()) {
    // No two offers of one id have the same sum and other numbers.
    const bool same = sum && row->second == integer_result(*sum);
    return same ? Answer{.outcome = Outcome::duplicate, .result = row->second} : Answer{.outcome = Outcome::conflict};
  }
  if (offer.type == late_type && !knows_late) return {.outcome = Outcome::invalid};
  if (!sum) return {.outcome = Outcome::failed};
  return {.outcome = Outcome::stored, .result = integer_result(*sum)};
}

Answer deliver(const Offer &offer, Rows &rows) {
  const Answer answer = judge(offer, false, rows);
  if (answer.outcome == Outcome::stored) rows.results[offer.operation_id] = answer.result;
  if (!traits_of(answer.outcome).success) ++rows.letters[{answer.outcome, offer.name()}].deliveries;
  return answer;
}

Answer redrive(const Offer &offer, Outcome reason, Rows &rows) {
  const Answer answer = judge(offer, true, rows);
  const auto node = rows.letters.extract({reason, offer.name()});
  Rows::Letter letter = node.mapped();
  ++rows.changes;
  if (answer.outcome == Outcome::stored) rows.results[offer.operation_id] = answer.result;
  if (traits_of(answer.outcome).success) return answer;
  ++letter.redrives;
  rows.letters[{answer.outcome, offer.name()}] = letter;
  return answer;
}

Action open() {
  return {};
}
Action commit(std::vector<Offer> offers) {
  return {.kind = Action::Kind::commit, .offers = std::move(offers)};
}
Action change(Action::Kind kind, Offer offer, Outcome reason) {
  return {.kind = kind, .offers = {std::move(offer)}, .reason = reason};
}

// More bytes than the memtable of the dead letters takes, so that the next commit begins another one and another log,
// and this one is written out meanwhile.
std::vector<Offer> filling_offers() {
  constexpr std::size_t bytes = 950'000;
  std::vector<Offer> offers{{.operation_id = "beside", .numbers = {1}}};
  for (char fill = 'a'; fill < 'j'; ++fill)
    offers.push_back({.operation_id = {}, .numbers = {}, .poison = Bytes(bytes, fill)});
  return offers;
}

std::vector<Action> make_actions() {
  const Offer poison{.operation_id = {}, .numbers = {}, .poison = "no job"};
  const Offer late{.operation_id = "late", .numbers = {4, 5}, .type = late_type};
  const Offer overflow{.operation_id = "overflow", .numbers = {largest, 1}};
  const Offer second_intent{.operation_id = "b", .numbers = {9}};
  const Offer large{.operation_id = {}, .numbers = {}, .poison = filling_offers().back().poison};
  using Kind = Action::Kind;
  return {
      open(), // 0: of the first part
      commit({{"a", {1, 2}}, {"b", {3}}}),
      commit({{"a", {1, 2}}, second_intent, {"c", {5}}, {"c", {5}}}),
      commit({poison, late, overflow, poison}),
      change(Kind::redrive, late, Outcome::invalid),
      change(Kind::purge, poison, Outcome::invalid),
      open(),
      commit({{"d", {7}}, second_intent, late}),
      change(Kind::redrive, second_intent, Outcome::conflict),
      open(), // 9: behind the first part
      commit({{"e", {8}}, poison}),
      open(),
      commit({{"f", {9}}}),
      open(), // 13: of the second part. The fifth opening: there are tables enough for a compaction
      commit({{"a", {1, 2}}, {"g", {10}}}),
      commit(filling_offers()),
      commit({{"h", {11}}}),
      commit({{"i", {12}}, poison}),
      change(Kind::purge, large, Outcome::invalid),
      change(Kind::redrive, overflow, Outcome::failed),
      commit({{"j", {13}}, overflow}),
  };
}

} // namespace

std::string Rows::describe() const {
  std::string text = "results:";
  for (const auto &[id, result] : results)
    text += " " + id + "=" + to_hex(result);
  text += "; dead letters:";
  for (const auto &[name, letter] : letters) {
    text += " [" + std::string(traits_of(name.first).name) + " " + name.second + "]x" +
            std::to_string(letter.deliveries) + "," + std::to_string(letter.redrives);
  }
  return text + "; changes: " + std::to_string(changes);
}

std::vector<Answer> apply(const Action &action, Rows &rows) {
  switch (action.kind) {
  case Action::Kind::open:
    return {};
  case Action::Kind::commit: {
    std::vector<Answer> answers;
    answers.reserve(action.offers.size());
    for (const Offer &offer : action.offers)
      answers.push_back(deliver(offer, rows));
    return answers;
  }
  case Action::Kind::redrive:
    return {redrive(action.offers[0], action.reason, rows)};
  case Action::Kind::purge:
    rows.letters.erase({action.reason, action.offers[0].name()});
    ++rows.changes;
    return {};
  }
  return {};
}

std::vector<Part> parts_of_store_actions() {
  return {{.first = 0, .end = 9}, {.first = 13, .end = store_actions().size()}};
}

const std::vector<Action> &store_actions() {
  static const std::vector<Action> actions = make_actions();
  return actions;
}

} // namespace onced::testing
