#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "support/command.hpp"

namespace onced::testing {

// What becomes of jobs. The name of each is its operation id; of a conflict, which shares it, with `conflict_mark`
// behind it. What became of it is "stored" and its result, or the name of the outcome.
using Fates = std::map<std::string, std::string>;
inline constexpr char conflict_mark = '!';

// The jobs of one cut: good ones, conflicts with good ones that were sent before, and poison of two kinds.
struct Load {
  std::string before;  // good jobs, as the input of `send`, to be settled before the others are sent
  std::string during;  // all others
  Fates fates;         // of each, once it is settled
  std::size_t bad = 0; // of these, the conflicts and poison
};

// `prefix` begins each operation id. Poison is padded with so many bytes: with enough of them the dead letters outgrow
// their memtable, which is then written out to a table under load.
[[nodiscard]] Load make_load(const std::string &prefix, std::size_t pad_bytes);

// The name and the fate that a line of `send` reports. A duplicate's fate is that of the job that was stored.
[[nodiscard]] Fates::value_type fate_in(const Line &line);

// The fate of a sum.
[[nodiscard]] inline std::string stored(std::size_t result) {
  return "stored " + std::to_string(result);
}

} // namespace onced::testing
