// The scenarios: that the document names all of them, and that each can be found. Not what they play: that is the
// demo's.
#include "rehearsal/scenarios.hpp"

#include <doctest/doctest.h>

#include "support/document.hpp"

namespace onced::rehearsal {

TEST_CASE("the documented scenarios are those that are built in and in their order") {
  const auto rows = testing::document_table("rehearsal.md", "scenarios");
  REQUIRE(rows.size() == scenarios().size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    REQUIRE(rows[at].size() == 3);
    CHECK(rows[at][0] == scenarios()[at].name);
  }
}

TEST_CASE("a scenario is found by its name alone") {
  REQUIRE(find_scenario("burst") != nullptr);
  CHECK(find_scenario("burst")->has_backlog);
  CHECK(find_scenario("Burst") == nullptr);
  CHECK(find_scenario("") == nullptr);
}

} // namespace onced::rehearsal
