#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crash/dice.hpp"
#include "crash/job.hpp"
#include "crash/model.hpp"

namespace onced::crash {

// The jobs that a sender is given in a round: new ones, ones that were sent before by anybody, other intents under
// their keys, and bad ones. None that the sender holds.
[[nodiscard]] std::vector<Job> draw_jobs(Dice &dice, const Model &model, SenderNumber sender, const std::string &name);

// A new good job with this operation id.
[[nodiscard]] Job draw_job(Dice &dice, const std::string &operation_id);

// One line a job, each in one of its notations.
[[nodiscard]] std::string input_of(Dice &dice, const std::vector<Job> &jobs);

} // namespace onced::crash
