// docs/protocol.md against the code: every worked example, byte by byte, and every table that mirrors a table here.
// Does not verify the document's prose.
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "onced/job.hpp"
#include "onced/limits.hpp"
#include "onced/outcome.hpp"
#include "support/document.hpp"
#include "unit/wire/samples.hpp"

namespace onced::testing {
namespace {

TEST_CASE("the batch of the protocol document is what a sender writes") {
  CHECK(to_hex(sample_batch()) == to_hex(document_example("protocol.md", "batch")));
  CHECK(to_hex(sample_jobs()[0]) == to_hex(document_example("protocol.md", "bare job")));
}

TEST_CASE("the greeting and the query of the protocol document are what a peer writes") {
  for (const auto &sample : sample_peer_messages()) {
    CAPTURE(sample.first);
    CHECK(to_hex(sample.second) == to_hex(document_example("protocol.md", sample.first)));
  }
}

TEST_CASE("the messages of the worker in the protocol document are what a worker writes") {
  for (const auto &sample : sample_worker_messages()) {
    CAPTURE(sample.first);
    CHECK(to_hex(sample.second) == to_hex(document_example("protocol.md", sample.first)));
  }
}

TEST_CASE("the outcomes of the protocol document are those of the code") {
  const auto rows = document_table("protocol.md", "outcomes");
  REQUIRE(rows.size() == outcome_table.size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    CAPTURE(at);
    REQUIRE(rows[at].size() == 5);
    CHECK(rows[at][0] == outcome_table[at].name);
    CHECK(rows[at][1] == std::to_string(static_cast<unsigned>(outcome_table[at].outcome)));
    CHECK(rows[at][2] == (outcome_table[at].final ? "yes" : "no"));
    CHECK_FALSE(rows[at][3].empty());
    CHECK_FALSE(rows[at][4].empty());
  }
}

TEST_CASE("the states of the protocol document are those of the code") {
  const auto rows = document_table("protocol.md", "states");
  REQUIRE(rows.size() == static_cast<std::size_t>(wire::WorkerState::draining) + 1);
  for (std::size_t at = 0; at < rows.size(); ++at)
    CHECK(rows[at][0] == name_of(static_cast<wire::WorkerState>(at)));
}

TEST_CASE("the defects of the protocol document are those of the code") {
  const auto rows = document_table("protocol.md", "defects");
  REQUIRE(rows.size() == job_defect_names.size() + 2);
  for (std::size_t at = 0; at < job_defect_names.size(); ++at)
    CHECK(rows[at][0] == job_defect_names[at]);
  CHECK(rows[job_defect_names.size()][0] == "message_malformed");
  CHECK(rows[job_defect_names.size() + 1][0] == "message_multipart");
}

TEST_CASE("the limits of the protocol document are those of the code") {
  const std::map<std::string, std::uint64_t> limits_of_the_wire{
      {"operation_id_bytes_max", limits::operation_id_bytes_max},
      {"effect_key_bytes_max", limits::effect_key_bytes_max},
      {"type_bytes_max", limits::type_bytes_max},
      {"traceparent_bytes_max", limits::traceparent_bytes_max},
      {"nesting_max", limits::nesting_max},
      {"sum_numbers_max", limits::sum_numbers_max},
      {"result_bytes_max", limits::result_bytes_max},
      {"detail_bytes_max", limits::detail_bytes_max},
      {"message_bytes_max", limits::message_bytes_max},
      {"deliveries_per_message_max", limits::deliveries_per_message_max},
      {"job_bytes_max", limits::job_bytes_max},
      {"query_bytes_max", limits::query_bytes_max},
      {"rows_per_answer_max", limits::rows_per_answer_max},
      {"answer_bytes_max", limits::answer_bytes_max},
      {"known_senders_max", limits::known_senders_max},
      {"routes_a_sender_max", limits::routes_a_sender_max},
      {"queries_a_connection_waiting_max", limits::queries_a_connection_waiting_max},
      {"network_queries_waiting_max", limits::network_queries_waiting_max},
      {"unread_bytes_max", limits::unread_bytes_max},
      {"window_jobs_max", limits::window_jobs_max},
      {"window_bytes_max", limits::window_bytes_max},
      {"accepted_ask_again", static_cast<std::uint64_t>(limits::accepted_ask_again.count())},
  };
  std::map<std::string, std::uint64_t> documented;
  for (const auto &row : document_table("protocol.md", "limits"))
    documented[row.at(0)] = std::stoull(row.at(1));
  CHECK(documented == limits_of_the_wire);
}

} // namespace
} // namespace onced::testing
