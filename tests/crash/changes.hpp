#pragma once

#include <string>

#include "crash/dice.hpp"
#include "crash/lab.hpp"

namespace onced::crash {

// What is killed while dead letters are redriven or purged.
struct ChangeKill {
  enum class Who { nobody, worker, command } who = Who::nobody; // by kill -9, after the first line of the command
  std::string point;                                            // or the worker at this point
};

// Makes some dead letters that a redrive would store, and redrives or purges some of those there are, while no sender
// runs. The worker is started for it and is dead after it, and the database was compared. Returns whether the kill came
// about.
bool change_dead_letters(Lab &lab, Dice &dice, const ChangeKill &kill, const std::string &name);

} // namespace onced::crash
