#include "worker_process.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace onced::bench {
namespace {

Error failure(const std::string &concerns, const std::string &cause) {
  return {.code = ErrorCode::internal, .concerns = concerns, .cause = cause, .remedy = "run it by hand to see why"};
}

// A child's standard output, read line by line.
struct Child {
  int process = -1;
  std::FILE *output = nullptr;
};

// What it logs goes to `log`.
Result<Child> spawn_child(std::vector<std::string> words, const std::filesystem::path &log) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return tl::unexpected(failure(words.front(), "no pipe"));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Child child;
  const int error = ::posix_spawn(&child.process, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  child.output = ::fdopen(pipe[0], "r");
  if (error != 0 || child.output == nullptr) {
    ::close(pipe[0]);
    return tl::unexpected(failure(words.front(), "cannot be started"));
  }
  return child;
}

Error failure_with_log(const std::string &cause, const std::filesystem::path &log) {
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return failure("the worker", cause + (text.empty() ? "" : "; its log:\n" + text));
}

// The first line that the child prints, as JSON; null where it is none.
nlohmann::json first_line(std::FILE *output) {
  std::string line;
  for (int byte = std::fgetc(output); byte != EOF && byte != '\n'; byte = std::fgetc(output)) {
    line += static_cast<char>(byte);
  }
  return nlohmann::json::parse(line, nullptr, false);
}

bool ended_in_order(int process) {
  int status = 0;
  return ::waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

WorkerProcess::WorkerProcess(std::string command, std::filesystem::path directory)
    : command_(std::move(command)), directory_(std::move(directory)) {}

WorkerProcess::WorkerProcess(WorkerProcess &&other) noexcept
    : command_(std::move(other.command_)), directory_(std::exchange(other.directory_, {})),
      process_(std::exchange(other.process_, -1)), output_(std::exchange(other.output_, nullptr)),
      endpoints_(std::move(other.endpoints_)) {}

WorkerProcess::~WorkerProcess() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  if (output_ != nullptr) std::fclose(output_);
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

Result<WorkerProcess> WorkerProcess::start(const std::string &command, const std::vector<std::string> &arguments) {
  std::string name = (std::filesystem::temp_directory_path() / "onced-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return tl::unexpected(failure(name, "cannot be created"));
  WorkerProcess worker(command, name);
  if (auto spawned = worker.spawn(arguments); !spawned) return tl::unexpected(spawned.error());
  return worker;
}

Result<void> WorkerProcess::spawn(const std::vector<std::string> &arguments) {
  std::vector<std::string> words{command_,    "serve",
                                 "--data",    directory_ / "data",
                                 "--jobs",    "tcp://127.0.0.1:*",
                                 "--replies", "tcp://127.0.0.1:*",
                                 "--senders", "1"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto child = spawn_child(words, log());
  if (!child) return tl::unexpected(child.error());
  process_ = child->process;
  output_ = child->output;
  const auto ready = first_line(output_);
  if (!ready.is_object() || !ready.contains("jobs") || !ready.contains("replies")) {
    return tl::unexpected(failure_with_log("it was not ready", log()));
  }
  endpoints_ = {.jobs = ready["jobs"], .replies = ready["replies"]};
  return {};
}

Result<std::size_t> WorkerProcess::stop_and_count() {
  ::kill(process_, SIGTERM);
  if (!ended_in_order(std::exchange(process_, -1))) {
    return tl::unexpected(failure_with_log("it did not end in order", log()));
  }
  const auto child = spawn_child({command_, "count", "--data", directory_ / "data"}, log());
  if (!child) return tl::unexpected(child.error());
  const auto counts = first_line(child->output);
  std::fclose(child->output);
  if (!ended_in_order(child->process) || !counts.is_object()) {
    return tl::unexpected(failure_with_log("its results could not be counted", log()));
  }
  return counts["results"].get<std::size_t>();
}

} // namespace onced::bench
