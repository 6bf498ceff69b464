// Verifies an engine against a model of maps: units of several sessions beside each other, commits that fail, crashes,
// openings and views, all drawn from a seed. ONCED_TEST_SEED repeats a seed that a failure has named.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "support/seeds.hpp"
#include "unit/engine/contract.hpp"

namespace onced::testing {
namespace {

using engine::Counter;
using engine::Counters;
using engine::Failure;
using engine::Family;
using engine::Patience;
using engine::Session;

using Place = std::pair<Family, Bytes>;
using Rows = std::map<Place, Bytes>;

constexpr std::array<Family, 3> modelled_families{Family::operations, Family::queue, Family::dead_letters};
constexpr std::size_t sessions_beside_each_other = 3;

struct Truth {
  Rows rows;
  Counters sums;
};

// A session, and the unit that it has in hand.
struct ModelUnit {
  std::unique_ptr<Session> session;
  bool is_open = false;
  std::set<Place> holds;   // surely
  std::set<Place> touches; // and perhaps holds
  std::map<Place, std::optional<Bytes>> writes;
  Counters added;

  void end() {
    is_open = false;
    holds.clear();
    touches.clear();
    writes.clear();
    added = {};
  }
};

struct PastView {
  std::unique_ptr<engine::View> view;
  Truth truth;
};

class EngineHistory {
public:
  EngineHistory(Subject &subject, std::uint64_t seed) : subject_(subject), random_(seed) { begin_life(); }

  void step() {
    ModelUnit &unit = units_.at(below(units_.size()));
    const std::uint64_t drawn = below(100);
    if (drawn < 3) return look_around();
    if (drawn < 4) return end_life();
    if (!unit.is_open) return drawn < 20 ? read(unit) : begin(unit);
    if (drawn < 40) return claim_or_lock(unit, true);
    if (drawn < 60) return claim_or_lock(unit, false);
    if (drawn < 80) return change(unit);
    if (drawn < 83) return abandon(unit);
    if (drawn < 88) return commit_badly(unit);
    if (drawn < 96) return commit_well(unit);
  }

  void finish() {
    end_life();
    look_around();
  }

private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  Place place() {
    const Family family = modelled_families.at(below(modelled_families.size()));
    return {family, Bytes(1, static_cast<char>('a' + below(5)))};
  }

  void begin_life() {
    units_.clear();
    for (std::size_t count = 0; count < sessions_beside_each_other; ++count) {
      ModelUnit unit;
      unit.session = subject_.engine().session();
      units_.push_back(std::move(unit));
    }
  }

  void end_life() {
    views_.clear();
    if (below(2) == 0) {
      units_.clear();
      subject_.reopen();
    } else {
      subject_.crash();
    }
    begin_life();
    look_around();
  }

  void begin(ModelUnit &unit) {
    unit.session->begin(engine::Sync::stable);
    unit.is_open = true;
  }

  void abandon(ModelUnit &unit) {
    unit.session->abandon();
    unit.end();
  }

  [[nodiscard]] const Bytes *row(const Place &of) const {
    const auto found = truth_.rows.find(of);
    return found == truth_.rows.end() ? nullptr : &found->second;
  }

  void check_found(const Found &found, const Place &of) const {
    const Bytes *const expected = row(of);
    REQUIRE(found.state == (expected == nullptr ? State::absent : State::present));
    if (expected != nullptr) REQUIRE(found.value == *expected);
  }

  void read(ModelUnit &unit) {
    std::set<Place> wanted;
    const Place first = place();
    for (std::uint64_t more = below(4) + 1; more > 0; --more)
      wanted.emplace(first.first, place().second);
    std::vector<BytesView> keys;
    for (const Place &of : wanted)
      keys.emplace_back(of.second);
    std::vector<Found> found;
    REQUIRE(unit.session->read(first.first, keys, found));
    REQUIRE(found.size() == keys.size());
    std::size_t at = 0;
    for (const Place &of : wanted)
      check_found(found.at(at++), of);
  }

  // Whether another unit keeps this one from the row: surely, perhaps.
  std::pair<bool, bool> kept_from(const ModelUnit &unit, const Place &of) const {
    std::pair<bool, bool> kept{false, false};
    for (const ModelUnit &other : units_) {
      if (&other == &unit) continue;
      kept.first |= other.holds.contains(of);
      kept.second |= other.touches.contains(of);
    }
    return kept;
  }

  void claim_or_lock(ModelUnit &unit, bool claims) {
    const Place of = place();
    if (unit.touches.contains(of)) return;
    const Bytes value = std::to_string(random_());
    std::vector<Found> found;
    const std::array<engine::Claim, 1> wanted{engine::Claim{.key = of.second, .value = value}};
    const std::array<BytesView, 1> keys{of.second};
    const auto step = claims ? unit.session->claim(of.first, wanted, Patience::none, found)
                             : unit.session->lock(of.first, keys, Patience::none, found);
    REQUIRE(step.has_value());
    REQUIRE(found.size() == 1);
    const auto [surely, perhaps] = kept_from(unit, of);
    const bool is_held = found.front().state == State::held;
    if (surely) REQUIRE(is_held);
    if (is_held) REQUIRE(perhaps);
    if (is_held) return;
    check_found(found.front(), of);
    unit.touches.insert(of);
    if (claims == (row(of) == nullptr)) unit.holds.insert(of); // claimed, or locked where there is a row
    if (claims && row(of) == nullptr) unit.writes[of] = value;
  }

  // Of what the unit holds.
  void change(ModelUnit &unit) {
    if (unit.holds.empty()) return;
    auto held = unit.holds.begin();
    std::advance(held, static_cast<std::ptrdiff_t>(below(unit.holds.size())));
    const Bytes value = std::to_string(random_());
    const bool erases = below(3) == 0;
    const auto step =
        erases ? unit.session->erase(held->first, held->second) : unit.session->put(held->first, held->second, value);
    REQUIRE(step.has_value());
    unit.writes[*held] = erases ? std::optional<Bytes>() : value;
    const auto counter = static_cast<Counter>(below(engine::counter_count));
    const auto amount = static_cast<std::int64_t>(below(7)) - 3;
    unit.session->add(counter, amount);
    unit.added[counter] += amount;
  }

  void keep(const ModelUnit &unit) {
    for (const auto &[of, value] : unit.writes) {
      if (value) truth_.rows[of] = *value;
      if (!value) truth_.rows.erase(of);
    }
    truth_.sums += unit.added;
  }

  void commit_well(ModelUnit &unit) {
    REQUIRE(unit.session->commit());
    keep(unit);
    unit.end();
  }

  void commit_badly(ModelUnit &unit) {
    const auto fault = static_cast<CommitFault>(below(4));
    if (unit.writes.empty() || !subject_.fail_next_commit(fault)) return;
    const auto kind = failed_commit(*unit.session);
    if (fault == CommitFault::unknown_written) keep(unit);
    unit.end();
    if (kind != Failure::Kind::retry) end_life_by_crash();
  }

  void end_life_by_crash() {
    views_.clear();
    subject_.crash();
    begin_life();
  }

  void look_around() {
    if (views_.size() < 3) views_.push_back({subject_.engine().view(), truth_});
    PastView &past = views_.at(below(views_.size()));
    for (const Family family : modelled_families) {
      Rows rows;
      const auto scanned = past.view->scan({.family = family, .backwards = below(2) == 0}, [&](auto key, auto value) {
        rows.emplace(Place{family, Bytes(key)}, Bytes(value));
        return true;
      });
      REQUIRE(scanned.has_value());
      Rows expected = past.truth.rows;
      std::erase_if(expected, [&](const auto &entry) { return entry.first.first != family; });
      REQUIRE(rows == expected);
    }
    const auto sums = past.view->counters();
    REQUIRE(sums.has_value());
    REQUIRE(*sums == past.truth.sums);
    if (below(2) == 0) std::swap(past, views_.back());
    if (below(2) == 0) views_.pop_back();
  }

  Subject &subject_;
  std::mt19937_64 random_;
  Truth truth_;
  std::vector<ModelUnit> units_;
  std::vector<PastView> views_;
};

void chance_agrees_with_a_model(const EngineFactory &factory) {
  constexpr std::uint64_t runs = 10;
  for (const Seed seed : seeds(runs)) {
    CAPTURE(seed);
    const auto subject = factory();
    EngineHistory history(*subject, seed.number);
    for (unsigned step = 0; step < subject->random_steps() / runs; ++step)
      history.step();
    history.finish();
  }
}

} // namespace

std::span<const ContractCase> model_cases() {
  static constexpr std::array<ContractCase, 1> cases{{
      {"units, failures, crashes and views by chance agree with a model", chance_agrees_with_a_model},
  }};
  return cases;
}

} // namespace onced::testing
