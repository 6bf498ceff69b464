#include "suggestion.hpp"

#include <algorithm>
#include <cstddef>

namespace onced::tools {
namespace {

// Longer words are no slip of the hand, and comparing them takes time in the product of their lengths.
constexpr std::size_t word_bytes_max = 64;

// How many letters are to be inserted, removed, replaced or swapped with their neighbour.
std::size_t slips_between(std::string_view left, std::string_view right) {
  std::vector<std::vector<std::size_t>> slips(left.size() + 1, std::vector<std::size_t>(right.size() + 1));
  for (std::size_t row = 0; row <= left.size(); ++row) {
    for (std::size_t column = 0; column <= right.size(); ++column) {
      std::size_t &least = slips[row][column];
      least = row == 0 ? column : row;
      if (row == 0 || column == 0) continue;
      const std::size_t replaced = left[row - 1] == right[column - 1] ? 0 : 1;
      least = std::min({slips[row - 1][column] + 1, slips[row][column - 1] + 1, slips[row - 1][column - 1] + replaced});
      const bool swapped =
          row > 1 && column > 1 && left[row - 1] == right[column - 2] && left[row - 2] == right[column - 1];
      if (swapped) least = std::min(least, slips[row - 2][column - 2] + 1);
    }
  }
  return slips[left.size()][right.size()];
}

} // namespace

std::string suggestion_for(std::string_view word, const std::vector<std::string> &names) {
  if (word.size() > word_bytes_max) return {};
  std::string best;
  std::size_t fewest = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string &name : names) {
    const std::size_t slips = slips_between(word, name);
    if (slips >= fewest) continue;
    fewest = slips;
    best = name;
  }
  return best;
}

} // namespace onced::tools
