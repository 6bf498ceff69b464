// Units beside each other: their locks, their claims, and what each of them sees.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "unit/engine/contract.hpp"

namespace onced::testing {
namespace {

using engine::Counter;
using engine::Family;
using engine::Patience;

// Long enough that a unit which does not wait would be through.
constexpr std::chrono::milliseconds a_while{50};

void two_units_interleave(const EngineFactory &factory) {
  const auto subject = factory();
  const auto one = begun(subject->engine());
  const auto other = begun(subject->engine());
  CHECK(claim(*one, "a", "of one") == Seen{});
  CHECK(claim(*other, "b", "of other") == Seen{});
  CHECK_FALSE(stored(subject->engine(), "a"));
  put(*one, "a", "of one, again");
  commit(*other);
  CHECK(stored(subject->engine(), "b") == "of other");
  CHECK_FALSE(stored(subject->engine(), "a"));
  CHECK(claim(*one, "c", "of one") == Seen{});
  commit(*one);
  CHECK(stored(subject->engine(), "a") == "of one, again");
  CHECK(stored(subject->engine(), "c") == "of one");
}

void a_session_serves_unit_after_unit(const EngineFactory &factory) {
  const auto subject = factory();
  const auto session = subject->engine().session();
  for (const char *const key : {"a", "b", "c"}) {
    session->begin(engine::Sync::stable);
    CHECK(claim(*session, key, key) == Seen{});
    commit(*session);
  }
  CHECK(keys_in(*subject->engine().view(), {}) == std::vector<Bytes>{"a", "b", "c"});
}

void a_claimed_key_is_held(const EngineFactory &factory) {
  const auto subject = factory();
  const auto holder = begun(subject->engine());
  REQUIRE(claim(*holder, "k", "of the holder") == Seen{});
  const auto other = begun(subject->engine());
  const std::array<engine::Claim, 2> claims{engine::Claim{.key = "k", .value = "of the other"},
                                            engine::Claim{.key = "l", .value = "of the other"}};
  std::vector<Found> found;
  REQUIRE(other->claim(Family::operations, claims, Patience::none, found));
  REQUIRE(found.size() == 2);
  CHECK(found[0].state == State::held);
  CHECK(found[1].state == State::absent);
  commit(*other);
  holder->abandon();
  CHECK_FALSE(stored(subject->engine(), "k"));
  CHECK(stored(subject->engine(), "l") == "of the other");
  other->begin(engine::Sync::stable);
  CHECK(claim(*other, "k", "of the other") == Seen{});
}

void a_locked_row_is_held(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "k", "first");
  const auto holder = begun(subject->engine());
  REQUIRE(lock(*holder, "k") == Seen{.state = State::present, .value = "first"});
  const auto other = begun(subject->engine());
  CHECK(lock(*other, "k").state == State::held);
  put(*holder, "k", "second");
  commit(*holder);
  CHECK(lock(*other, "k") == Seen{.state = State::present, .value = "second"});
}

void patience_waits_for_the_other_unit(const EngineFactory &factory) {
  for (const bool commits : {true, false}) {
    CAPTURE(commits);
    const auto subject = factory();
    const auto holder = begun(subject->engine());
    REQUIRE(claim(*holder, "k", "of the holder") == Seen{});
    std::atomic<bool> is_through{false};
    bool succeeded = false;
    Seen seen;
    std::thread waiter([&] {
      const auto session = subject->engine().session();
      session->begin(engine::Sync::stable);
      const std::array<engine::Claim, 1> claims{engine::Claim{.key = "k", .value = "of the waiter"}};
      std::vector<Found> found;
      const auto step = session->claim(Family::operations, claims, Patience::wait, found);
      is_through = true;
      if (step) seen = {.state = found.front().state, .value = Bytes(found.front().value)};
      succeeded = step && session->commit();
    });
    std::this_thread::sleep_for(a_while);
    const bool was_through = is_through;
    const auto ended = commits ? holder->commit() : engine::Step();
    if (!commits) holder->abandon();
    waiter.join();
    CHECK_FALSE(was_through);
    REQUIRE(ended.has_value());
    REQUIRE(succeeded);
    CHECK(seen == (commits ? Seen{.state = State::present, .value = "of the holder"} : Seen{}));
    CHECK(stored(subject->engine(), "k") == (commits ? "of the holder" : "of the waiter"));
  }
}

void a_lock_says_what_is_there_now(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "k", "first");
  const auto session = subject->engine().session();
  const std::array<BytesView, 1> keys{"k"};
  std::vector<Found> found;
  REQUIRE(session->read(Family::operations, keys, found));
  session->begin(engine::Sync::stable);
  const auto other = begun(subject->engine());
  REQUIRE(lock(*other, "k").state == State::present);
  put(*other, "k", "second");
  commit(*other);
  CHECK(lock(*session, "k") == Seen{.state = State::present, .value = "second"});
  CHECK(lock(*session, "none") == Seen{});
}

// First of one that was there when the engine was opened, then of newer ones.
void reads_grow(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "a", "a");
  subject->reopen();
  const std::array<BytesView, 4> newer{"b", "c", "d", "e"};
  for (const BytesView key : newer)
    store_row(subject->engine(), key, key);
  const auto session = subject->engine().session();
  const std::array<BytesView, 1> older{"a"};
  std::vector<Found> found;
  for (std::size_t count = 1; count <= newer.size(); ++count) {
    REQUIRE(session->read(Family::operations, older, found));
    CHECK(found.at(0).value == "a");
    REQUIRE(session->read(Family::operations, std::span(newer).first(count), found));
    REQUIRE(found.size() == count);
    for (std::size_t at = 0; at < count; ++at)
      CHECK(found.at(at).value == newer.at(at));
  }
}

void a_claim_leaves_the_row_that_is_there(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "k", "first");
  const auto session = begun(subject->engine());
  CHECK(claim(*session, "k", "second") == Seen{.state = State::present, .value = "first"});
  CHECK(claim(*session, "l", "") == Seen{});
  commit(*session);
  CHECK(stored(subject->engine(), "k") == "first");
  CHECK(stored(subject->engine(), "l") == "");
}

void a_damaged_row_is_no_absent_one(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "k", "first");
  if (!subject->damage(Family::operations, "k")) return;
  const auto session = begun(subject->engine());
  CHECK(claim(*session, "k", "second").state == State::damaged);
  CHECK(lock(*session, "k").state == State::damaged);
  session->abandon();
  const std::array<BytesView, 2> keys{"k", "l"};
  std::vector<Found> found;
  REQUIRE(session->read(Family::operations, keys, found));
  CHECK(found.at(0).state == State::damaged);
  CHECK(found.at(1).state == State::absent);
}

void one_of_many_claims_wins(const EngineFactory &factory) {
  const auto subject = factory();
  constexpr unsigned rounds = 40;
  constexpr unsigned threads = 2;
  std::array<std::atomic<unsigned>, rounds> wins{};
  std::atomic<bool> has_failed{false};
  const auto claims_all = [&] {
    const auto session = subject->engine().session();
    for (unsigned round = 0; round < rounds; ++round) {
      const Bytes key = "k" + std::to_string(round);
      const std::array<engine::Claim, 1> claims{engine::Claim{.key = key, .value = "v"}};
      std::vector<Found> found;
      session->begin(engine::Sync::stable);
      const bool is_claimed = session->claim(Family::operations, claims, Patience::wait, found).has_value();
      const bool is_won = is_claimed && found.front().state == State::absent;
      if (is_won) session->add(Counter::results, 1);
      if (is_won) ++wins.at(round);
      if (!is_claimed || !session->commit()) has_failed = true;
    }
  };
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; ++thread)
    running.emplace_back(claims_all);
  for (std::thread &thread : running)
    thread.join();
  REQUIRE_FALSE(has_failed);
  for (const auto &of_round : wins)
    CHECK(of_round == 1);
  CHECK(sum_of(subject->engine(), Counter::results) == rounds);
}

void an_abandoned_unit_leaves_nothing(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "there", "first");
  for (const bool by_destructor : {false, true}) {
    auto session = begun(subject->engine());
    CHECK(claim(*session, "k", "v") == Seen{});
    REQUIRE(lock(*session, "there").state == State::present);
    REQUIRE(session->erase(Family::operations, "there"));
    REQUIRE(session->put(Family::queue, "k", "v"));
    session->add(Counter::queued, 1);
    if (!by_destructor) session->abandon();
    session.reset();
    CHECK_FALSE(stored(subject->engine(), "k"));
    CHECK_FALSE(stored(subject->engine(), "k", Family::queue));
    CHECK(stored(subject->engine(), "there") == "first");
    CHECK(sum_of(subject->engine(), Counter::queued) == 0);
    const auto next = begun(subject->engine());
    CHECK(lock(*next, "there").state == State::present);
  }
}

void families_are_apart(const EngineFactory &factory) {
  const auto subject = factory();
  const auto session = begun(subject->engine());
  REQUIRE(claim(*session, "k", "v") == Seen{});
  for (const Family family : {Family::queue, Family::relay, Family::dead_letters})
    REQUIRE(session->put(family, "k", name_of(family)));
  commit(*session);
  for (const Family family : {Family::queue, Family::relay, Family::dead_letters})
    CHECK(stored(subject->engine(), "k", family) == name_of(family));
  session->begin(engine::Sync::stable);
  REQUIRE(lock(*session, "k").state == State::present);
  REQUIRE(session->erase(Family::queue, "k"));
  commit(*session);
  CHECK_FALSE(stored(subject->engine(), "k", Family::queue));
  CHECK(stored(subject->engine(), "k") == "v");
}

void an_empty_unit_commits(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "k", "v");
  const auto session = begun(subject->engine());
  commit(*session);
  session->begin(engine::Sync::stable);
  CHECK(lock(*session, "k").state == State::present);
  commit(*session);
  subject->crash();
  CHECK(stored(subject->engine(), "k") == "v");
}

void an_erased_key_can_be_claimed_again(const EngineFactory &factory) {
  const auto subject = factory();
  store_row(subject->engine(), "k", "first");
  const auto session = begun(subject->engine());
  REQUIRE(lock(*session, "k").state == State::present);
  REQUIRE(session->erase(Family::operations, "k"));
  commit(*session);
  CHECK_FALSE(stored(subject->engine(), "k"));
  store_row(subject->engine(), "k", "second");
  CHECK(stored(subject->engine(), "k") == "second");
}

} // namespace

std::span<const ContractCase> unit_cases() {
  static constexpr std::array<ContractCase, 14> cases{{
      {"two open units take turns, and each is seen once it is committed", two_units_interleave},
      {"a session serves unit after unit", a_session_serves_unit_after_unit},
      {"a key that a unit has claimed is held for others until it ends", a_claimed_key_is_held},
      {"a row that a unit has locked is held for others until it ends", a_locked_row_is_held},
      {"a patient claim waits until the other unit ends", patience_waits_for_the_other_unit},
      {"a lock says what is there now, not what was read before", a_lock_says_what_is_there_now},
      {"a session reads more rows than before", reads_grow},
      {"a claim leaves the row that is there", a_claim_leaves_the_row_that_is_there},
      {"a damaged row is never absent", a_damaged_row_is_no_absent_one},
      {"of claims by two threads at once exactly one wins", one_of_many_claims_wins},
      {"an abandoned unit leaves nothing and holds nothing", an_abandoned_unit_leaves_nothing},
      {"the same key in two families is two rows", families_are_apart},
      {"a unit without rows commits, and changes nothing", an_empty_unit_commits},
      {"an erased key can be claimed again", an_erased_key_can_be_claimed_again},
  }};
  return cases;
}

} // namespace onced::testing
