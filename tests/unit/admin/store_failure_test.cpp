// A change that meets a store which has failed says so to whoever keeps the store. Not here: what the keeper does then.
#include <doctest/doctest.h>

#include "support/eventually.hpp"
#include "support/faulty_environment.hpp"
#include "unit/admin/answers.hpp"

namespace onced::testing {
namespace {

// A store that has failed in the background, as a table could not be written, and that no commit has met since.
struct FailedStore : StoreHarness {
  explicit FailedStore(FaultKind kind) {
    options.environment = faulty_environment(faults);
    const auto big = [](const HandlerCall &) {
      Done done;
      messagepack::Writer(done.result).binary(Bytes(60'000, 'x'));
      return done;
    };
    REQUIRE(handlers.add_inline("big", big).has_value());
    open();
    faults->speak(kind);
    faults->fail_from(FaultAt::table_append, 1);
    for (int number = 0; number < 2'000 && faults->failures() == 0 && !met_by_commit; ++number) {
      const Batch batch({job_bytes({.operation_id = std::to_string(number), .numbers = {number}, .type = "big"})});
      met_by_commit = !store->commit(batch.view(), handlers).has_value();
    }
  }

  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  bool met_by_commit = false; // a commit was faster than the end of the loop
};

Bytes change_request(const std::string &query) {
  return request({{"query", query},
                  {"id", std::string(32, 'a')},
                  {"operation_id", "a"},
                  {"effect", "absent"},
                  {"by", "kim"},
                  {"why", "INC-7"}});
}

TEST_CASE("a change that a failed store refuses reports the failure whatever its error is called") {
  for (const std::string query : {"dead-letters redrive", "dead-letters purge", "pending resolve"}) {
    for (const FaultKind kind : {FaultKind::io_error, FaultKind::try_again, FaultKind::corruption}) {
      CAPTURE(query);
      CAPTURE(static_cast<int>(kind));
      std::unique_ptr<FailedStore> failed;
      REQUIRE(eventually([&] {
        failed = std::make_unique<FailedStore>(kind);
        return !failed->met_by_commit;
      }));
      std::optional<Error> failure;
      std::string code = "not_found"; // until the store has noticed
      CHECK(eventually([&] {
        code = error_of(admin::answer_change(*failed->store, failed->handlers, change_request(query), failure))["code"];
        return code != "not_found";
      }));
      CAPTURE(code);
      CHECK(failure.has_value());
    }
  }
}

TEST_CASE("a change that a sound store refuses reports no failure") {
  StoreHarness harness;
  harness.open();
  for (const std::string query : {"dead-letters redrive", "dead-letters purge", "pending resolve", "no change"}) {
    std::optional<Error> failure;
    CHECK_FALSE(
        error_of(admin::answer_change(*harness.store, harness.handlers, change_request(query), failure)).empty());
    CHECK(!failure);
  }
}

} // namespace
} // namespace onced::testing
