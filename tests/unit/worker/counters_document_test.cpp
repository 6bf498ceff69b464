// The counters that docs/operations.md tells of are those that there are.
#include <doctest/doctest.h>

#include "support/document.hpp"
#include "worker/counters.hpp"

namespace onced::testing {

TEST_CASE("the documented counters are those of the worker in their order") {
  const auto rows = document_table("operations.md", "counters");
  REQUIRE(rows.size() == worker::counter_table.size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    REQUIRE(rows[at].size() >= 2);
    CHECK(rows[at][0] == worker::counter_table[at].name);
    CHECK(rows[at][1] == worker::counter_table[at].help);
  }
}

} // namespace onced::testing
