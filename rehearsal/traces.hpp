#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "onced/error.hpp"
#include "rehearsal/effects.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/stage.hpp"
#include "rehearsal/time.hpp"

namespace onced::rehearsal {

// An event as a worker or a sender has told it.
struct Told { // NOLINT(bugprone-exception-escape): a Json moves without exceptions
  std::string name;
  Micros at = 0;
  Json fields;
  std::string line; // all of it
};

// A process that was killed.
struct Killed {
  Micros began = 0;
  Micros ended = 0;
  bool is_worker = false;
  std::string point;
};

// What a scenario has left behind, before anything is made of it.
struct Traces {
  bool worker_tells = true;               // false: it is someone else's
  std::vector<Told> worker;               // in the order in which it was told
  std::vector<std::vector<Told>> senders; // a stream for each process
  std::vector<Killed> kills;
  std::vector<Mark> marks;
  std::vector<Redriven> redriven;
  std::vector<Effect> effects;             // in the order in which the provider had them
  std::map<std::string, Micros> commits;   // of a worker that tells, by operation id: what the rows say
  std::map<std::string, std::string> rows; // likewise: the row, as JSON
};

// Reads them; the scenario's processes have ended. A last line that a kill cut short is left out. Errors: those of the
// store.
[[nodiscard]] Result<Traces> read_traces(Stage &stage);

} // namespace onced::rehearsal
