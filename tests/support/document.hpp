#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/ids.hpp"

// Reads what the pages of docs/ say, so that tests can hold the code to it.
namespace onced::testing {

// The text of a page behind the line `<!-- MARK -->`, up to its end.
inline std::string document_after(const std::string &page, const std::string &mark) {
  std::ifstream file(std::string(ONCED_TESTS_DIR) + "/../docs/" + page);
  if (!file) throw std::runtime_error("docs/" + page + " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const std::string line = "<!-- " + mark + " -->\n";
  const auto at = document.find(line);
  if (at == std::string::npos) throw std::runtime_error("docs/" + page + " has no mark " + mark);
  return document.substr(at + line.size());
}

// The bytes of a worked example: hexadecimal in a code block, with remarks behind `#`.
inline Bytes document_example(const std::string &page, const std::string &name) {
  std::istringstream lines(document_after(page, "example: " + name));
  std::string hex;
  std::string line;
  std::getline(lines, line); // the fence
  while (std::getline(lines, line) && !line.starts_with("```")) {
    for (const char character : line.substr(0, line.find('#')))
      if (character != ' ') hex += character;
  }
  const auto bytes = from_hex(hex);
  if (!bytes) throw std::runtime_error("the example " + name + " is no hexadecimal");
  return *bytes;
}

// The cells of a table, row by row, without its head and without the ticks around names.
inline std::vector<std::vector<std::string>> document_table(const std::string &page, const std::string &name) {
  std::istringstream lines(document_after(page, "table: " + name));
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(lines, line) && line.starts_with("|")) {
    std::vector<std::string> cells;
    std::istringstream parts(line.substr(1));
    for (std::string cell; std::getline(parts, cell, '|');) {
      std::string text;
      for (const char character : cell)
        if (character != '`') text += character;
      const auto first = text.find_first_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1));
    }
    rows.push_back(std::move(cells));
  }
  if (rows.size() < 3) throw std::runtime_error("the table " + name + " has no rows");
  return {rows.begin() + 2, rows.end()};
}

} // namespace onced::testing
