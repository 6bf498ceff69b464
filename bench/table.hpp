#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "measurement.hpp"

namespace onced::bench {

// What a table says first of a run: only the share of duplicates, or the whole cell and the mode.
enum class Label { share, cell };

// For people: a header, a line for a row, and three lines (minimum, median, maximum, each figure by itself) for the
// rows of each cell. Every line ends with a newline.
[[nodiscard]] std::string table_header(Label label);
[[nodiscard]] std::string table_line(Label label, const Row &row);
[[nodiscard]] std::string table_of_repeats(Label label, std::span<const Row> rows);

} // namespace onced::bench
