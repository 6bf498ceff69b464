#include "table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace onced::bench {
namespace {

struct Column {
  const char *field;
  std::string_view title;
  std::size_t width;
  int decimals;
};

constexpr std::array<Column, 11> columns{{
    {"deliveries_per_second", "deliveries/s", 13, 0},
    {"results_per_second", "results/s", 10, 0},
    {"worker_cpu_us_per_delivery", "CPU us", 8, 2},
    {"bytes_written_per_result", "B/result", 9, 0},
    {"log_syncs", "fsyncs", 8, 0},
    {"deliveries_per_batch", "a batch", 8, 0},
    {"acknowledgement_p50_us", "p50 us", 9, 0},
    {"acknowledgement_p99_us", "p99 us", 9, 0},
    {"acknowledgement_p999_us", "p99.9 us", 9, 0},
    {"resident_max_mib", "MiB", 5, 0},
    {"resent", "resent", 7, 0},
}};

constexpr std::string_view no_figure = "-";

std::string mode_of(const Row &row) {
  if (row["mode"] == "closed") return "closed";
  if (!row["load"].is_null()) return fmt::format("load {:g}", row["load"].get<double>());
  return fmt::format("{:.0f}/s", row["rate"].get<double>());
}

std::string label_of(Label label, const Row &row) {
  if (label == Label::share) return fmt::format("{:>10g}", row["share"].get<double>());
  return fmt::format("{:>10g} {:>5} {:>10} {:>3} {:>10}", row["share"].get<double>(),
                     row["per_message"].get<std::size_t>(), row["durability"].get<std::string>(),
                     row["workers"].get<unsigned>(), mode_of(row));
}

std::string cell_text(const Column &column, const Row &figure) {
  if (figure.is_null()) return fmt::format(" {:>{}}", no_figure, column.width);
  return fmt::format(" {:>{}.{}f}", figure.get<double>(), column.width, column.decimals);
}

// The figures of a column in these rows, in order; what is null is left out.
std::vector<double> sorted_figures(const Column &column, std::span<const Row *const> rows) {
  std::vector<double> figures;
  figures.reserve(rows.size());
  for (const Row *row : rows) {
    if (!(*row)[column.field].is_null()) figures.push_back((*row)[column.field].get<double>());
  }
  std::sort(figures.begin(), figures.end());
  return figures;
}

// At shares 0, 0.5 and 1 of the way are the minimum, the median and the maximum; of an even number, the median is in
// the middle of two.
Row figure_at(const std::vector<double> &sorted, double share) {
  if (sorted.empty()) return nullptr;
  const double way = share * static_cast<double>(sorted.size() - 1);
  return (sorted[static_cast<std::size_t>(std::floor(way))] + sorted[static_cast<std::size_t>(std::ceil(way))]) / 2;
}

std::string line_at(const std::string &label, std::string_view name, double share, std::span<const Row *const> rows) {
  std::string line = fmt::format("{} {:>6}", label, name);
  for (const Column &column : columns)
    line += cell_text(column, figure_at(sorted_figures(column, rows), share));
  return line + "\n";
}

} // namespace

std::string table_header(Label label) {
  std::string line = label == Label::share ? fmt::format("{:>10}", "duplicates")
                                           : fmt::format("{:>10} {:>5} {:>10} {:>3} {:>10}", "duplicates", "a msg",
                                                         "durability", "wrk", "mode");
  line += fmt::format(" {:>6}", "repeat");
  for (const Column &column : columns)
    line += fmt::format(" {:>{}}", column.title, column.width);
  return line + "\n";
}

std::string table_line(Label label, const Row &row) {
  std::string line = fmt::format("{} {:>6}", label_of(label, row), row["repeat"].get<unsigned>());
  for (const Column &column : columns)
    line += cell_text(column, row[column.field]);
  return line + "\n";
}

std::string table_of_repeats(Label label, std::span<const Row> rows) {
  std::vector<std::pair<std::string, std::vector<const Row *>>> cells; // in the order in which they came
  for (const Row &row : rows) {
    const std::string name = label_of(label, row);
    auto cell = std::find_if(cells.begin(), cells.end(), [&](const auto &known) { return known.first == name; });
    if (cell == cells.end()) cell = cells.insert(cells.end(), {name, {}});
    cell->second.push_back(&row);
  }
  std::string table;
  for (const auto &[name, of_cell] : cells) {
    table += line_at(name, "min", 0, of_cell);
    table += line_at(name, "median", 0.5, of_cell);
    table += line_at(name, "max", 1, of_cell);
  }
  return table;
}

} // namespace onced::bench
