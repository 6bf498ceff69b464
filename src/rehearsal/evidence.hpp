#pragma once

#include <string>
#include <vector>

#include "onced/error.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/stage.hpp"

namespace onced::rehearsal {

// The deliveries of one scenario, joined from the event streams of worker and senders, what was killed, and the rows.
struct Evidence {
  std::vector<Json> rows;     // docs/rehearsal-record.md, in their order
  std::vector<Json> timeline; // of the first job that was delivered again where something was killed; else empty
  std::vector<double> recovery_ms; // for each kill, until the first acknowledgement after it
};

// Reads what a scenario has left behind; its processes have ended. Errors: those of the store.
[[nodiscard]] Result<Evidence> gather_evidence(Stage &stage);

// "2026-01-31T12:00:00.000000Z".
[[nodiscard]] std::string iso_time(WallTime time);

// The rows as RFC 4180, the names first.
[[nodiscard]] std::string csv_of(const std::vector<Json> &rows);

} // namespace onced::rehearsal
