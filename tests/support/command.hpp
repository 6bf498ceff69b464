#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.hpp"

// Subcommands run to their end, and the JSON that they print.
namespace onced::testing {

// One line of JSON. Throws where it is no JSON object.
class Line {
public:
  explicit Line(const std::string &json);

  // A field: a string as it is, anything else as JSON, "absent" where it is not there.
  [[nodiscard]] std::string operator[](const std::string &name) const;
  // The names in the order in which they are printed, separated by spaces.
  [[nodiscard]] const std::string &names() const { return names_; }

private:
  std::map<std::string, std::string> fields_;
  std::string names_;
};

[[nodiscard]] std::vector<Line> lines_of(const std::string &output);

struct Finished {
  ExitStatus exit;
  std::string output;
  std::string errors;

  [[nodiscard]] std::vector<Line> lines() const { return lines_of(output); }
  // Its only line. Throws where there are more or less.
  [[nodiscard]] Line line() const;
};

using Arguments = std::vector<std::string>;

// Runs the command with these arguments and this standard input, and waits for its end.
[[nodiscard]] Finished run_command(const Arguments &arguments, const std::string &input = {});
[[nodiscard]] Finished run_command(const Process::Options &options);

// Reads the rest of its output and waits for its end.
[[nodiscard]] Finished finish(Process &process);

[[nodiscard]] Arguments operator+(Arguments left, const Arguments &right);

// What `count` prints.
struct Rows {
  std::uint64_t results = 0;
  std::uint64_t dead_letters = 0;
  bool operator==(const Rows &) const = default;
};
std::ostream &operator<<(std::ostream &out, const Rows &rows);

// Asks `count` of a data directory, whether a worker runs on it or not.
[[nodiscard]] Rows count_rows(const std::filesystem::path &data);

// The rows of `dead-letters list`, each as `dead-letters show` prints it.
[[nodiscard]] std::vector<Line> dead_letters(const std::filesystem::path &data);

[[nodiscard]] inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

// The field of every line, in order, separated by spaces.
[[nodiscard]] std::string field_of(const std::vector<Line> &lines, const std::string &name);

// How often each value of a field is there.
[[nodiscard]] std::map<std::string, std::size_t> tally(const std::vector<Line> &lines, const std::string &name);
// The same as text: "duplicate 2, stored 5".
[[nodiscard]] std::string tally_text(const std::vector<Line> &lines, const std::string &name);

// The input of `send`: jobs PREFIX-1 to PREFIX-N, the numbers of job I being [I, 1].
[[nodiscard]] std::string jobs_as_json(const std::string &prefix, std::size_t count);

} // namespace onced::testing
