#include "child.hpp"

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "held_signals.hpp"

namespace onced::bench::scale {
namespace {

// main.cpp reads these.
std::vector<std::string> command_of(const Setting &setting, const ChildTask &task) {
  std::vector<std::string> words{"/proc/self/exe",
                                 "--child",
                                 task.name,
                                 "--child-data",
                                 task.data.string(),
                                 "--child-first",
                                 std::to_string(task.first),
                                 "--child-end",
                                 std::to_string(task.end),
                                 "--seed",
                                 std::to_string(setting.seed),
                                 "--memory",
                                 std::to_string(setting.memory_bytes)};
  if (task.count_rows) words.emplace_back("--child-count");
  return words;
}

} // namespace

Child::Child(const Setting &setting, const ChildTask &task) {
  auto output = make_pipe();
  if (!output) throw std::runtime_error("no pipe");
  auto process =
      ChildProcess::start({.words = command_of(setting, task), .environment = {}, .output = output->writing.number()});
  if (!process) throw std::runtime_error("this program cannot be started again");
  process_ = std::move(*process);
  output_ = ChildOutput(std::move(output->reading));
}

Row Child::answer() {
  constexpr std::chrono::milliseconds look_interval{100};
  std::optional<std::string> line;
  while (!line && !output_.has_ended()) {
    if (HeldSignals::pending()) throw std::runtime_error("told to stop");
    line = output_.next_line(std::chrono::steady_clock::now() + look_interval);
  }
  auto answer = Row::parse(line.value_or(""), nullptr, false);
  if (!answer.is_object()) throw std::runtime_error("a process of this program ended without an answer");
  return answer;
}

void Child::wait() {
  if (!process_.wait().is_success()) throw std::runtime_error("a process of this program ended out of order");
}

void Child::kill() {
  process_.kill();
  if (!process_.wait().is_kill()) {
    throw std::runtime_error("a process of this program had ended before it was killed");
  }
}

} // namespace onced::bench::scale
