#include "unit/engine/contract.hpp"

#include <array>

#include <doctest/doctest.h>

namespace onced::testing {

using engine::Counter;
using engine::Engine;
using engine::Family;
using engine::Patience;
using engine::Session;

void run_contract(const EngineFactory &factory) {
  for (const auto &cases : {unit_cases(), failure_cases(), view_cases(), model_cases()}) {
    for (const ContractCase &contract_case : cases) {
      SUBCASE(contract_case.name) {
        contract_case.run(factory);
      }
    }
  }
}

std::unique_ptr<Session> begun(Engine &engine) {
  auto session = engine.session();
  session->begin(engine::Sync::stable);
  return session;
}

namespace {

Seen only(const engine::Step &step, const std::vector<Found> &found) {
  REQUIRE(step.has_value());
  REQUIRE(found.size() == 1);
  const bool has_value = found.front().state == State::present;
  return {.state = found.front().state, .value = has_value ? Bytes(found.front().value) : Bytes()};
}

} // namespace

Seen claim(Session &session, BytesView key, BytesView value, Patience how) {
  const std::array<engine::Claim, 1> claims{engine::Claim{.key = key, .value = value}};
  std::vector<Found> found;
  const auto step = session.claim(Family::operations, claims, how, found);
  return only(step, found);
}

Seen lock(Session &session, BytesView key, Patience how) {
  const std::array<BytesView, 1> keys{key};
  std::vector<Found> found;
  const auto step = session.lock(Family::operations, keys, how, found);
  return only(step, found);
}

void put(Session &session, BytesView key, BytesView value) {
  REQUIRE(session.put(Family::operations, key, value).has_value());
}

void commit(Session &session) {
  REQUIRE(session.commit().has_value());
}

engine::Failure::Kind failed_commit(Session &session) {
  const auto ended = session.commit();
  REQUIRE_FALSE(ended.has_value());
  session.abandon();
  return ended.error().kind;
}

void store_row(Engine &engine, BytesView key, BytesView value) {
  const auto session = begun(engine);
  REQUIRE(claim(*session, key, value).state == State::absent);
  commit(*session);
}

std::optional<Bytes> stored(Engine &engine, BytesView key, Family family) {
  const auto session = engine.session();
  const std::array<BytesView, 1> keys{key};
  std::vector<Found> found;
  REQUIRE(session->read(family, keys, found).has_value());
  REQUIRE(found.size() == 1);
  if (found.front().state == State::absent) return std::nullopt;
  REQUIRE(found.front().state == State::present);
  return Bytes(found.front().value);
}

std::int64_t sum_of(Engine &engine, Counter counter) {
  const auto sums = engine.view()->counters();
  REQUIRE(sums.has_value());
  return (*sums)[counter];
}

std::vector<Bytes> keys_in(const engine::View &view, const engine::Range &range) {
  std::vector<Bytes> keys;
  const auto scanned = view.scan(range, [&](BytesView key, BytesView) {
    keys.emplace_back(key);
    return true;
  });
  REQUIRE(scanned.has_value());
  return keys;
}

} // namespace onced::testing
