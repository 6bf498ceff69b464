#include "exit_codes.hpp"

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/document.hpp"

using namespace onced;
using namespace onced::tools;

TEST_CASE("the documented exit codes are those of the program") {
  const auto rows = testing::document_table("operations.md", "exit codes");
  REQUIRE(rows.size() == exit_code_table.size());
  for (std::size_t at = 0; at < exit_code_table.size(); ++at) {
    const auto &row = rows[at];
    const ExitCodeTraits &traits = exit_code_table[at];
    REQUIRE(row.size() == 4);
    CHECK(row[0] == std::to_string(static_cast<int>(traits.code)));
    CHECK(row[1] == traits.name);
    CHECK(row[2] == traits.meaning);
    CHECK_FALSE(row[3].empty());
  }
}

TEST_CASE("no two exit codes share a number or a name") {
  std::set<int> numbers;
  std::set<std::string_view> names;
  for (const ExitCodeTraits &traits : exit_code_table) {
    numbers.insert(static_cast<int>(traits.code));
    names.insert(traits.name);
  }
  CHECK(numbers.size() == exit_code_table.size());
  CHECK(names.size() == exit_code_table.size());
}

TEST_CASE("each kind of error has its exit code") {
  const std::vector<std::pair<ErrorCode, int>> expected{
      {ErrorCode::usage, 64},
      {ErrorCode::configuration, 78},
      {ErrorCode::not_found, 66},
      {ErrorCode::locked, 73},
      {ErrorCode::endpoint, 69},
      {ErrorCode::newer_format, 65},
      {ErrorCode::corrupt, 65},
      {ErrorCode::loss_suspected, 65},
      {ErrorCode::store_unavailable, 74},
      {ErrorCode::timed_out, 75},
      {ErrorCode::unsupported_protocol, 69},
      {ErrorCode::out_of_resources, 71},
      {ErrorCode::internal, 70},
  };
  REQUIRE(expected.size() == static_cast<std::size_t>(ErrorCode::internal) + 1);
  for (const auto &row : expected) {
    CAPTURE(name_of(row.first));
    CHECK(static_cast<int>(exit_code_of(row.first)) == row.second);
  }
}
