// Queued jobs are handed to functions, on a real store: what each end of a handler leads to, and each policy of an
// unknown effect. Not here: what goes wrong around the handlers (runner_faults_test.cpp), commands (command_test.cpp,
// contract/handlers_test.cpp), kill -9 (tests/handlers), and the leases by themselves (leases_test.cpp).
#include "unit/runner/workshop.hpp"

using namespace onced;
using namespace onced::testing;

TEST_CASE("a function is given its job and its result is committed and told") {
  std::mutex mutex;
  std::vector<std::string> seen;
  Workshop shop(type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    const std::scoped_lock lock(mutex);
    seen.emplace_back(call.operation_id);
    CHECK(call.type == "slow");
    CHECK(call.attempt == 1);
    CHECK(call.idempotency_key.size() == 64);
    CHECK(call.fencing_token.size() == 32);
    CHECK_FALSE(call.stop.stop_requested());
    return answer(5);
  }));
  shop.start();
  shop.accept({slow_job("a", 1), slow_job("b", 2)});
  CHECK(shop.ends_with(2, 0));
  CHECK(eventually([&] { return shop.told_stored == 2; }));
  CHECK(seen == std::vector<std::string>{"a", "b"});
  CHECK(shop.is_sound());
}

TEST_CASE("each end of a plain handler leads to its own") {
  struct End {
    QueuedResult first;
    int calls;
    bool fails;
  };
  const std::vector<End> ends{{TryAgain{"busy"}, 2, false},
                              {EffectUnknown{"who knows"}, 2, false},
                              {Failed{"no"}, 1, true},
                              {Invalid{"no such field"}, 1, true},
                              {Done{.result = "\xC1"}, 2, false}};
  for (std::size_t at = 0; at < ends.size(); ++at) {
    CAPTURE(at);
    std::atomic<int> calls{0};
    Workshop shop(type_of("slow", [&](const QueuedCall &) -> QueuedResult {
      return ++calls == 1 ? ends[at].first : QueuedResult(answer(1));
    }));
    shop.start();
    shop.accept({slow_job("a")});
    CHECK(shop.ends_with(ends[at].fails ? 0 : 1, ends[at].fails ? 1 : 0));
    CHECK(calls == ends[at].calls);
    CHECK(eventually([&] { return shop.told_failed == (ends[at].fails ? 1 : 0); }));
  }
}

TEST_CASE("an exception is tried again and receives that are used up make a dead letter") {
  std::atomic<int> calls{0};
  QueuedType type = type_of("slow", [&](const QueuedCall &call) -> QueuedResult {
    CHECK(static_cast<int>(call.attempt) == ++calls);
    throw std::runtime_error("oh");
  });
  type.max_receive_count = 3;
  Workshop shop(std::move(type));
  shop.start();
  shop.accept({slow_job("a")});
  CHECK(shop.ends_with(0, 1));
  CHECK(calls == 3);
  const auto letter = shop.keeper->lease()->dead_letters(1, {}).value().at(0);
  CHECK(letter.receives == 3);
  CHECK(letter.errors.size() == 3);
  CHECK(letter.detail == "the handler threw: oh");
  CHECK_FALSE(letter.effect_unknown);
}

TEST_CASE("an unknown effect is called again where the provider does nothing twice") {
  std::atomic<int> calls{0};
  std::string first_key;
  Workshop shop(external_type(EffectPolicy::retry, [&](const QueuedCall &call) -> QueuedResult {
    if (++calls == 1) {
      first_key = call.idempotency_key;
      return EffectUnknown{"no answer"};
    }
    CHECK(call.idempotency_key == first_key);
    return answer(1);
  }));
  shop.start();
  shop.accept({pay_job("a")});
  CHECK(shop.ends_with(1, 0));
  CHECK(calls == 2);
}

TEST_CASE("an unknown effect is asked for before any other call") {
  enum class Says : std::uint8_t { applied, absent, unknown_then_applied };
  for (const Says says : {Says::applied, Says::absent, Says::unknown_then_applied}) {
    CAPTURE(static_cast<int>(says));
    std::atomic<int> calls{0};
    std::atomic<int> asked{0};
    Workshop shop(external_type(
        EffectPolicy::query,
        [&](const QueuedCall &) -> QueuedResult {
          return ++calls == 1 ? QueuedResult(EffectUnknown{"no answer"}) : QueuedResult(answer(1));
        },
        [&](const QueuedCall &call) -> ReconcileResult {
          ++asked;
          CHECK(call.attempt >= 2);
          if (says == Says::absent) return EffectAbsent{};
          if (says == Says::unknown_then_applied && asked == 1) return EffectUnknown{"away"};
          return answer(7);
        }));
    shop.start();
    shop.accept({pay_job("a")});
    CHECK(shop.ends_with(1, 0));
    CHECK(calls == (says == Says::absent ? 2 : 1));
    CHECK(asked == (says == Says::unknown_then_applied ? 2 : 1));
    CHECK(shop.keeper->lease()->get(Key{key_of("a", "pay")}).value()->result ==
          integer_result(says == Says::absent ? 1 : 7));
    CHECK(shop.counters.reconciled == 1);
    CHECK(shop.counters.receives == static_cast<std::uint64_t>(calls)); // to ask is not to hand over
  }
}

TEST_CASE("an unknown effect waits for its owner and nothing is called meanwhile") {
  std::atomic<int> calls{0};
  Workshop shop(external_type(EffectPolicy::hold, [&](const QueuedCall &) -> QueuedResult {
    return ++calls == 1 ? QueuedResult(EffectUnknown{"no answer"}) : QueuedResult(answer(1));
  }));
  shop.start();
  shop.accept({pay_job("applied"), pay_job("absent", 2)});
  CHECK(shop.is_held("applied"));
  CHECK(shop.row("applied")->receives == 1);
  CHECK(shop.row("applied")->owner == "treasury");
  CHECK(shop.row("applied")->errors == std::vector<std::string>{"no answer"});
  const Operator kim{.by = "kim", .why = "asked them"};
  CHECK(shop.keeper->lease()->resolve(Key{key_of("applied", "pay")}, integer_result(9), kim).has_value());
  CHECK(shop.ends_with(2, 0)); // the other was done at once
  CHECK(calls == 2);
  CHECK(shop.counters.held == 1);
}

TEST_CASE("a job that is resolved as absent is called again") {
  std::atomic<int> calls{0};
  Workshop shop(external_type(EffectPolicy::hold, [&](const QueuedCall &call) -> QueuedResult {
    CHECK(call.attempt == 1);
    return ++calls == 1 ? QueuedResult(EffectUnknown{"no answer"}) : QueuedResult(answer(1));
  }));
  shop.start();
  shop.accept({pay_job("a")});
  CHECK(shop.is_held("a"));
  CHECK(shop.keeper->lease()->resolve(Key{key_of("a", "pay")}, {}, {.by = "kim", .why = "asked"}).has_value());
  CHECK(shop.ends_with(1, 0));
  CHECK(calls == 2);
}

TEST_CASE("an external job whose receives are used up is held and never failed") {
  for (const EffectPolicy policy : {EffectPolicy::retry, EffectPolicy::query}) {
    std::atomic<int> calls{0};
    std::atomic<int> asked{0};
    QueuedType type = external_type(
        policy,
        [&](const QueuedCall &) -> QueuedResult {
          ++calls;
          return EffectUnknown{"no answer"};
        },
        [&](const QueuedCall &) -> ReconcileResult {
          ++asked;
          return EffectUnknown{"no answer either"};
        });
    type.max_receive_count = 3;
    Workshop shop(std::move(type));
    shop.start();
    shop.accept({pay_job("a")});
    CHECK(shop.is_held("a"));
    CHECK(shop.row("a")->effect_unknown);
    CHECK(calls == (policy == EffectPolicy::retry ? 3 : 1));
    CHECK(asked == (policy == EffectPolicy::retry ? 0 : 2));
    CHECK(shop.counts().dead_letters == 0);
  }
}

TEST_CASE("a handler that says that nothing was done leaves no unknown effect") {
  std::atomic<int> calls{0};
  Workshop shop(external_type(EffectPolicy::hold, [&](const QueuedCall &) -> QueuedResult {
    return ++calls < 3 ? QueuedResult(TryAgain{"not listening"}) : QueuedResult(answer(1));
  }));
  shop.start();
  shop.accept({pay_job("a")});
  CHECK(shop.ends_with(1, 0));
  CHECK(calls == 3);
  CHECK(shop.counters.held == 0);
}

TEST_CASE("a refusal after an unknown effect makes a dead letter that says so") {
  std::atomic<int> calls{0};
  Workshop shop(external_type(EffectPolicy::retry, [&](const QueuedCall &) -> QueuedResult {
    return ++calls == 1 ? QueuedResult(EffectUnknown{"no answer"}) : QueuedResult(Failed{"closed account"});
  }));
  shop.start();
  shop.accept({pay_job("a")});
  CHECK(shop.ends_with(0, 1));
  CHECK(shop.keeper->lease()->dead_letters(1, {}).value().at(0).effect_unknown);
}
