// Reading at one moment: scans, snapshots, damage.
#include <algorithm>
#include <array>
#include <string_view>

#include <doctest/doctest.h>

#include "unit/engine/contract.hpp"

namespace onced::testing {
namespace {

using namespace std::string_view_literals;

using engine::Counter;
using engine::Family;
using engine::Range;
using Keys = std::vector<Bytes>;

// With bytes that are no text at the edges of prefixes.
const Keys &sorted_keys() {
  static const Keys keys{Bytes("\0"sv), "a", Bytes("a\0"sv), "ab", "a\xFF", "b", "\xFF", Bytes("\xFF\0"sv), "\xFF\xFF"};
  return keys;
}

void fill(engine::Engine &engine) {
  const auto session = begun(engine);
  for (auto key = sorted_keys().rbegin(); key != sorted_keys().rend(); ++key)
    REQUIRE(session->put(Family::relay, *key, "v" + *key));
  REQUIRE(session->put(Family::queue, "a", "of another family"));
  commit(*session);
}

Keys with_prefix(BytesView prefix) {
  Keys keys = sorted_keys();
  std::erase_if(keys, [&](const Bytes &key) { return !key.starts_with(prefix); });
  return keys;
}

std::optional<Bytes> value_in(const engine::View &view, BytesView key) {
  auto value = view.get(Family::operations, key);
  REQUIRE(value.has_value());
  return std::move(*value);
}

void scans_are_in_order(const EngineFactory &factory) {
  const auto subject = factory();
  fill(subject->engine());
  const auto view = subject->engine().view();
  CHECK(keys_in(*view, {.family = Family::relay}) == sorted_keys());
  CHECK(keys_in(*view, {.family = Family::dead_letters}).empty());
  for (const BytesView prefix : {""sv, "a"sv, "b"sv, "c"sv, "\xFF"sv, "\xFF\xFF"sv, "\0"sv, "ab"sv}) {
    CAPTURE(prefix);
    Keys keys = with_prefix(prefix);
    CHECK(keys_in(*view, {.family = Family::relay, .prefix = prefix}) == keys);
    std::reverse(keys.begin(), keys.end());
    CHECK(keys_in(*view, {.family = Family::relay, .prefix = prefix, .backwards = true}) == keys);
  }
}

void scans_begin_and_end_anywhere(const EngineFactory &factory) {
  const auto subject = factory();
  fill(subject->engine());
  const auto view = subject->engine().view();
  for (const BytesView from : {"a\0"sv, "aa"sv, "c"sv, "\xFF\xFF"sv, "\xFF\xFF\xFF"sv}) {
    CAPTURE(from);
    Keys keys = sorted_keys();
    std::erase_if(keys, [&](const Bytes &key) { return key < from; });
    CHECK(keys_in(*view, {.family = Family::relay, .from = from}) == keys);
  }
  CHECK(keys_in(*view, {.family = Family::relay, .from = "ab"sv, .prefix = "a"sv}) == Keys{"ab", "a\xFF"});
  for (const bool backwards : {false, true}) {
    Keys seen;
    Keys values;
    const Range range{.family = Family::relay, .prefix = "a"sv, .backwards = backwards};
    const auto scanned = view->scan(range, [&](BytesView key, BytesView value) {
      seen.emplace_back(key);
      values.emplace_back(value);
      return seen.size() < 2;
    });
    REQUIRE(scanned.has_value());
    Keys expected = with_prefix("a");
    if (backwards) std::reverse(expected.begin(), expected.end());
    expected.resize(2);
    CHECK(seen == expected);
    CHECK(values == Keys{"v" + expected[0], "v" + expected[1]});
  }
}

void a_view_stays_at_its_moment(const EngineFactory &factory) {
  const auto subject = factory();
  const auto session = begun(subject->engine());
  for (const char *const key : {"changed", "erased"})
    REQUIRE(claim(*session, key, "first") == Seen{});
  session->add(Counter::results, 2);
  commit(*session);
  const auto view = subject->engine().view();
  session->begin(engine::Sync::stable);
  REQUIRE(lock(*session, "changed").state == State::present);
  put(*session, "changed", "second");
  REQUIRE(lock(*session, "erased").state == State::present);
  REQUIRE(session->erase(Family::operations, "erased"));
  REQUIRE(claim(*session, "new", "second") == Seen{});
  session->add(Counter::results, 1);
  commit(*session);
  CHECK(value_in(*view, "changed") == "first");
  CHECK(value_in(*view, "erased") == "first");
  CHECK_FALSE(value_in(*view, "new"));
  CHECK(keys_in(*view, {}) == Keys{"changed", "erased"});
  REQUIRE(view->counters());
  CHECK((*view->counters())[Counter::results] == 2);
  const auto later = subject->engine().view();
  CHECK(value_in(*later, "changed") == "second");
  CHECK(keys_in(*later, {}) == Keys{"changed", "new"});
  CHECK((*later->counters())[Counter::results] == 3);
}

void a_view_sees_no_unit_in_hand(const EngineFactory &factory) {
  const auto subject = factory();
  const auto session = begun(subject->engine());
  REQUIRE(claim(*session, "k", "v") == Seen{});
  session->add(Counter::results, 1);
  const auto view = subject->engine().view();
  CHECK(keys_in(*view, {}).empty());
  CHECK(sum_of(subject->engine(), Counter::results) == 0);
  commit(*session);
  CHECK(keys_in(*view, {}).empty());
  CHECK(stored(subject->engine(), "k") == "v");
}

void a_view_tells_of_damage(const EngineFactory &factory) {
  const auto subject = factory();
  for (const char *const key : {"a", "b", "c"})
    store_row(subject->engine(), key, "v");
  if (!subject->damage(Family::operations, "b")) return;
  const auto view = subject->engine().view();
  CHECK(value_in(*view, "a") == "v");
  const auto damaged = view->get(Family::operations, "b");
  REQUIRE_FALSE(damaged.has_value());
  CHECK(damaged.error().code == ErrorCode::corrupt);
  const auto scanned = view->scan({}, [](BytesView, BytesView) { return true; });
  REQUIRE_FALSE(scanned.has_value());
  CHECK(scanned.error().code == ErrorCode::corrupt);
}

void an_engine_says_where_and_what_it_is(const EngineFactory &factory) {
  const auto subject = factory();
  CHECK_FALSE(subject->engine().place().empty());
  CHECK(subject->engine().health());
  const auto report = subject->engine().verify_files();
  REQUIRE(report.has_value());
  CHECK(report->damage == "");
}

} // namespace

std::span<const ContractCase> view_cases() {
  static constexpr std::array<ContractCase, 6> cases{{
      {"scans go through the keys in order, forwards and backwards, within a prefix", scans_are_in_order},
      {"scans begin where they are told, and end when the visitor has enough", scans_begin_and_end_anywhere},
      {"a view stays at its moment", a_view_stays_at_its_moment},
      {"a view sees nothing of a unit in hand", a_view_sees_no_unit_in_hand},
      {"a view tells of damage", a_view_tells_of_damage},
      {"an engine says where it is, and that its files are sound", an_engine_says_where_and_what_it_is},
  }};
  return cases;
}

} // namespace onced::testing
