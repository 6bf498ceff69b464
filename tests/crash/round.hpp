#pragma once

#include <cstdint>
#include <string>

#include "crash/kills.hpp"
#include "crash/lab.hpp"

namespace onced::crash {

// Runs a round: dead letters are changed, senders send, a process is killed, and what was killed is started again;
// every time that the worker is dead, and at the end, the database is held against the model. Afterwards nothing runs.
// Returns what was killed, for people. Throws where something does not come to its end.
std::string run_round(Lab &lab, Deck &deck, std::uint64_t seed, const std::string &name);

} // namespace onced::crash
