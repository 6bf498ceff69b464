// Commits that fail, ends that nobody knows, and crashes.
#include <array>
#include <functional>
#include <thread>

#include <doctest/doctest.h>

#include "support/eventually.hpp"
#include "unit/engine/contract.hpp"

namespace onced::testing {
namespace {

using engine::Counter;
using engine::Failure;
using engine::Family;
using engine::Session;

// A unit that claims "k", changes "there" and adds to a sum; its commit is left out.
std::unique_ptr<Session> unit_in_hand(Subject &subject) {
  auto session = begun(subject.engine());
  REQUIRE(claim(*session, "k", "v") == Seen{});
  REQUIRE(lock(*session, "there").state == State::present);
  put(*session, "there", "second");
  session->add(Counter::results, 1);
  return session;
}

void check_all_or_nothing(Subject &subject, bool all) {
  CHECK(stored(subject.engine(), "k") == (all ? std::optional<Bytes>("v") : std::nullopt));
  CHECK(stored(subject.engine(), "there") == (all ? "second" : "first"));
  CHECK(sum_of(subject.engine(), Counter::results) == (all ? 1 : 0));
}

void a_failed_commit_says_how(const EngineFactory &factory) {
  struct Expected {
    CommitFault fault;
    Failure::Kind kind;
    bool is_written;
  };
  constexpr std::array<Expected, 4> expected{{
      {CommitFault::retry, Failure::Kind::retry, false},
      {CommitFault::unavailable, Failure::Kind::unavailable, false},
      {CommitFault::unknown_written, Failure::Kind::unknown, true},
      {CommitFault::unknown_lost, Failure::Kind::unknown, false},
  }};
  for (const Expected &one : expected) {
    const auto kind = one.kind;
    CAPTURE(static_cast<int>(one.fault));
    const auto subject = factory();
    store_row(subject->engine(), "there", "first");
    const auto session = unit_in_hand(*subject);
    if (!subject->fail_next_commit(one.fault)) continue;
    CHECK(failed_commit(*session) == kind);
    if (kind == Failure::Kind::retry) {
      check_all_or_nothing(*subject, false);
      const auto again = unit_in_hand(*subject);
      commit(*again);
      check_all_or_nothing(*subject, true);
      continue;
    }
    subject->crash();
    check_all_or_nothing(*subject, one.is_written);
  }
}

// Each step of a unit, one after another; a crash comes after each of them in turn.
void a_crash_at_each_step_leaves_all_or_nothing(const EngineFactory &factory) {
  const std::array<std::function<void(Session &)>, 6> steps{
      [](Session &unit) { unit.begin(engine::Sync::stable); },
      [](Session &unit) { REQUIRE(lock(unit, "there").state == State::present); },
      [](Session &unit) { REQUIRE(claim(unit, "k", "v") == Seen{}); },
      [](Session &unit) { put(unit, "there", "second"); },
      [](Session &unit) { unit.add(Counter::results, 1); },
      [](Session &unit) { commit(unit); },
  };
  for (std::size_t last = 0; last < steps.size(); ++last) {
    CAPTURE(last);
    const auto subject = factory();
    store_row(subject->engine(), "there", "first");
    const auto session = subject->engine().session();
    for (std::size_t step = 0; step <= last; ++step)
      steps.at(step)(*session);
    subject->crash();
    check_all_or_nothing(*subject, last + 1 == steps.size());
    const auto next = begun(subject->engine());
    CHECK(lock(*next, "there").state == State::present);
  }
}

void sums_are_exact(const EngineFactory &factory) {
  const auto subject = factory();
  const auto adds = [&](std::int64_t amount, bool commits) {
    const auto session = begun(subject->engine());
    session->add(Counter::queued, amount);
    session->add(Counter::queued_bytes, 10 * amount);
    session->add(Counter::queued_bytes, 1);
    REQUIRE(session->put(Family::queue, "k", "v"));
    if (commits) commit(*session);
  };
  adds(3, true);
  adds(100, false);
  adds(-1, true);
  {
    const auto one = begun(subject->engine());
    const auto other = begun(subject->engine());
    one->add(Counter::queued, 5);
    other->add(Counter::queued, 7);
    REQUIRE(one->put(Family::queue, "of one", "v"));
    REQUIRE(other->put(Family::queue, "of other", "v"));
    commit(*one);
    CHECK(sum_of(subject->engine(), Counter::queued) == 7);
    commit(*other);
  }
  const auto check = [&](std::int64_t queued, std::int64_t bytes) {
    CHECK(sum_of(subject->engine(), Counter::queued) == queued);
    CHECK(sum_of(subject->engine(), Counter::queued_bytes) == bytes);
    CHECK(sum_of(subject->engine(), Counter::relayed) == 0);
  };
  check(14, 22);
  subject->crash();
  check(14, 22);
  adds(-14, true);
  subject->reopen();
  check(0, -117);
}

void confirmed_rows_are_safe(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "k", "v");
  const auto session = subject->engine().session();
  const std::array<BytesView, 1> keys{"k"};
  std::vector<Found> found;
  REQUIRE(session->read(Family::operations, keys, found));
  CHECK(session->confirm());
  CHECK(subject->engine().is_all_stable());
  CHECK(subject->engine().health());
  subject->crash();
  CHECK(stored(subject->engine(), "k") == "v");
}

// Another reads a row whose commit is not stable yet. Only what was confirmed since outlives a crash.
void a_visible_row_is_safe_once_confirmed(const EngineFactory &factory) {
  for (const bool confirms : {true, false}) {
    CAPTURE(confirms);
    const auto subject = factory();
    if (!subject->hold_visible_commits()) return;
    std::optional<engine::Step> ended;
    std::thread committer([&, session = begun(subject->engine())] {
      const std::array<engine::Claim, 1> claims{engine::Claim{.key = "k", .value = "v"}};
      std::vector<Found> found;
      if (session->claim(Family::operations, claims, engine::Patience::none, found)) ended = session->commit();
    });
    const auto reader = subject->engine().session();
    const std::array<BytesView, 1> keys{"k"};
    std::vector<Found> found;
    const bool is_visible = eventually(
        [&] { return reader->read(Family::operations, keys, found) && found.front().state == State::present; });
    const bool was_all_stable = subject->engine().is_all_stable();
    const bool is_confirmed = confirms && reader->confirm();
    subject->crash();
    subject->release_commits();
    committer.join();
    REQUIRE(is_visible);
    CHECK_FALSE(was_all_stable);
    REQUIRE(is_confirmed == confirms);
    REQUIRE(ended.has_value());
    REQUIRE_FALSE(ended->has_value());
    CHECK(ended->error().kind == Failure::Kind::unknown);
    CHECK(stored(subject->engine(), "k") == (confirms ? std::optional<Bytes>("v") : std::nullopt));
  }
}

void boots_rise(const EngineFactory &factory) {
  const auto subject = factory();
  std::uint64_t last = subject->boot();
  CHECK(last >= 1);
  const std::string identity = subject->engine().identity();
  CHECK_FALSE(identity.empty());
  for (const bool crashes : {false, true, true, false}) {
    crashes ? subject->crash() : subject->reopen();
    CHECK(subject->boot() > last);
    last = subject->boot();
    CHECK(subject->engine().identity() == identity);
    CHECK(subject->engine().format_found().has_value());
  }
}

} // namespace

std::span<const ContractCase> failure_cases() {
  static constexpr std::array<ContractCase, 6> cases{{
      {"a failed commit says whether it was written, or that nobody knows", a_failed_commit_says_how},
      {"a crash after each step of a unit leaves all of it or nothing", a_crash_at_each_step_leaves_all_or_nothing},
      {"sums are exact after commits, abandoned units, crashes and openings", sums_are_exact},
      {"rows that were confirmed outlive a crash", confirmed_rows_are_safe},
      {"a row that is visible before it is stable is safe once it is confirmed", a_visible_row_is_safe_once_confirmed},
      {"boots rise over openings and crashes, and the store stays the same one", boots_rise},
  }};
  return cases;
}

} // namespace onced::testing
