#include "support/command.hpp"

#include <stdexcept>

#include <nlohmann/json.hpp>

namespace onced::testing {

Line::Line(const std::string &json) {
  const auto object = nlohmann::ordered_json::parse(json);
  if (!object.is_object()) throw std::runtime_error("not an object: " + json);
  for (const auto &[name, value] : object.items()) {
    fields_[name] = value.is_string() ? value.get<std::string>() : value.dump();
    names_.append(names_.empty() ? "" : " ").append(name);
  }
}

std::string Line::operator[](const std::string &name) const {
  const auto field = fields_.find(name);
  return field == fields_.end() ? "absent" : field->second;
}

std::vector<Line> lines_of(const std::string &output) {
  std::vector<Line> lines;
  for (std::size_t begin = 0; begin < output.size();) {
    const std::size_t end = output.find('\n', begin);
    if (end == std::string::npos) throw std::runtime_error("a line without its end: " + output.substr(begin));
    lines.emplace_back(output.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Line Finished::line() const {
  auto all = lines();
  if (all.size() != 1) throw std::runtime_error("not one line: " + output + "\n" + exit.story);
  return all.front();
}

Finished finish(Process &process) {
  std::string output = process.rest_of_output();
  ExitStatus exit = process.wait();
  exit.story += "\nstdout: " + output.substr(0, 2000);
  return {.exit = std::move(exit), .output = std::move(output), .errors = process.errors()};
}

Finished run_command(const Process::Options &options) {
  Process process(options);
  return finish(process);
}

Finished run_command(const Arguments &arguments, const std::string &input) {
  return run_command(Process::Options{.arguments = arguments, .input = input});
}

Arguments operator+(Arguments left, const Arguments &right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::ostream &operator<<(std::ostream &out, const Rows &rows) {
  return out << rows.results << " results and " << rows.dead_letters << " dead letters";
}

Rows count_rows(const std::filesystem::path &data) {
  const Finished counted = run_command({"count", "--data", data.string()});
  if (counted.exit.code != 0) throw std::runtime_error(counted.exit.story);
  const Line line = counted.line();
  if (line["pending"] != "0") throw std::runtime_error("pending jobs: " + counted.output);
  return {.results = std::stoull(line["results"]), .dead_letters = std::stoull(line["dead_letters"])};
}

std::vector<Line> dead_letters(const std::filesystem::path &data) {
  std::vector<Line> shown;
  const Finished listed = run_command({"dead-letters", "list", "--data", data.string()});
  if (listed.exit.code != 0) throw std::runtime_error(listed.exit.story);
  for (const Line &row : listed.lines()) {
    const Finished letter = run_command({"dead-letters", "show", row["id"], "--data", data.string()});
    if (letter.exit.code != 0) throw std::runtime_error(letter.exit.story);
    shown.push_back(letter.line());
  }
  return shown;
}

std::string field_of(const std::vector<Line> &lines, const std::string &name) {
  std::string values;
  for (const Line &line : lines)
    values.append(values.empty() ? "" : " ").append(line[name]);
  return values;
}

std::map<std::string, std::size_t> tally(const std::vector<Line> &lines, const std::string &name) {
  std::map<std::string, std::size_t> counts;
  for (const Line &line : lines)
    ++counts[line[name]];
  return counts;
}

std::string tally_text(const std::vector<Line> &lines, const std::string &name) {
  std::string text;
  for (const auto &[value, times] : tally(lines, name))
    text.append(text.empty() ? "" : ", ").append(value).append(" ").append(std::to_string(times));
  return text;
}

std::string jobs_as_json(const std::string &prefix, std::size_t count) {
  std::string text;
  for (std::size_t job = 1; job <= count; ++job) {
    const std::string number = std::to_string(job);
    text.append(R"({"operation_id":")").append(prefix).append("-").append(number);
    text.append(R"(","numbers":[)").append(number).append(",1]}\n");
  }
  return text;
}

} // namespace onced::testing
