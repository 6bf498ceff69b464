#pragma once

#include <string>
#include <vector>

#include "onced/error.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/stage.hpp"

namespace onced::rehearsal {

// What one scenario has left behind, in the forms of docs/rehearsal-record.md.
struct Evidence {
  std::vector<Json> rows;
  std::vector<Json> timeline;
  std::vector<Json> effects;   // at the provider
  std::vector<Json> late;      // settlements that were refused
  std::vector<Json> backlog;   // thinned; of a scenario that has one
  std::size_t in_hand_max = 0; // of it
};

// Reads it; the scenario's processes have ended. Errors: those of the store.
[[nodiscard]] Result<Evidence> gather_evidence(Stage &stage, bool has_backlog);

// Of each row of one scenario's evidence, how many of the rows have committed its job before it was consumed or, where
// that is not told, published. Null: it is of no job, or was not published.
[[nodiscard]] std::vector<Json> rows_before(const Json &rows);

// The rows as RFC 4180, the names first.
[[nodiscard]] std::string csv_of(const std::vector<Json> &rows);

} // namespace onced::rehearsal
