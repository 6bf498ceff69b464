// What is refused before it is sent. Not here: questions that are answered (sockets_test.cpp), and answers
// (unit/admin).
#include <chrono>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "wire/query.hpp"

namespace onced::testing {
namespace {

TEST_CASE("a request that no worker would read is refused before it is sent") {
  const Bytes long_request(limits::query_bytes_max, 'q');
  const auto answer = wire::ask("tcp://127.0.0.1:1", long_request, std::chrono::steady_clock::now());
  REQUIRE(!answer.has_value());
  CHECK(answer.error().code == ErrorCode::usage);
}

} // namespace
} // namespace onced::testing
