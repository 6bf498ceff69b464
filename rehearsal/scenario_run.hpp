#pragma once

#include <filesystem>

#include "rehearsal/json.hpp"
#include "rehearsal/plan.hpp"
#include "rehearsal/stage.hpp"

namespace onced::rehearsal {

// One scenario as it was played.
struct Played { // NOLINT(bugprone-exception-escape): a Json moves without exceptions
  Json facts;   // its parts of the record (docs/rehearsal-record.md)
  Json observed;
};

// Plays a scenario in a directory of its own; `sockets` is another, with a short path. What fails or cannot be played
// here is told in its facts. Throws Interrupted.
[[nodiscard]] Played play(const Setting &setting, const ScenarioPlan &plan, const std::filesystem::path &directory,
                          const std::filesystem::path &sockets);

} // namespace onced::rehearsal
