#include "worker_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held_signals.hpp"
#include "transport.hpp"
#include "wire/query.hpp"

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

// In the child between fork and exec: only what may be called there.
[[noreturn]] void become(char *const *arguments, int output, int log, int parent) {
  HeldSignals::release();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool orphaned = ::getppid() != parent; // the parent died before that
  if (!orphaned && ::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(log, STDERR_FILENO) >= 0) {
    ::execv(arguments[0], arguments);
  }
  ::_exit(127);
}

// What it logs goes to `log`.
Result<Child> spawn_child(std::vector<std::string> words, const std::filesystem::path &log) {
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return tl::unexpected(failure(words.front(), "no pipe"));
  const int log_file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int parent = ::getpid();
  Child child{.process = ::fork()};
  if (child.process == 0) become(arguments.data(), pipe[1], log_file, parent);
  ::close(pipe[1]);
  ::close(log_file);
  if (child.process < 0) {
    ::close(pipe[0]);
    return tl::unexpected(failure(words.front(), "cannot be started"));
  }
  child.output = ::fdopen(pipe[0], "r");
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

Result<WorkerProcess> WorkerProcess::start(const std::string &command, const std::vector<std::string> &arguments,
                                           const std::string &transport, const std::filesystem::path &parent) {
  std::string name = (parent / "onced-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return tl::unexpected(Error{.code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::store_unavailable,
                                .concerns = parent.string(),
                                .cause = std::generic_category().message(errno),
                                .remedy = "give a directory that may be written to"});
  }
  WorkerProcess worker(command, name);
  if (auto spawned = worker.spawn(arguments, transport); !spawned) return tl::unexpected(spawned.error());
  return worker;
}

Result<void> WorkerProcess::spawn(const std::vector<std::string> &arguments, const std::string &transport) {
  std::vector<std::string> words{command_,    "serve",
                                 "--data",    directory_ / "data",
                                 "--jobs",    endpoint_to_bind(transport, directory_, "jobs"),
                                 "--replies", endpoint_to_bind(transport, directory_, "replies"),
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

Result<WorkerProcess::Counters> WorkerProcess::counters() const {
  Bytes request;
  nlohmann::json::to_msgpack({{"query", "stats"}}, request);
  const auto answer =
      wire::ask(endpoints_.replies, request, std::chrono::steady_clock::now() + std::chrono::seconds(30));
  if (!answer) return tl::unexpected(answer.error());
  const auto stats = nlohmann::json::from_msgpack(*answer, true, false);
  if (!stats.is_object() || !stats.contains("deliveries")) {
    return tl::unexpected(failure("the worker", "its counters are not to be read"));
  }
  return Counters{.deliveries = stats["deliveries"].get<std::uint64_t>(),
                  .batches = stats.at("batches").get<std::uint64_t>(),
                  .commits = stats.at("commits").get<std::uint64_t>(),
                  .log_syncs = stats.at("log_syncs").get<std::uint64_t>()};
}

Result<WorkerProcess::Rows> WorkerProcess::stop_and_count() {
  ::kill(process_, SIGTERM);
  if (!ended_in_order(std::exchange(process_, -1))) {
    return tl::unexpected(failure_with_log("it did not end in order", log()));
  }
  const auto child = spawn_child({command_, "count", "--data", directory_ / "data"}, log());
  if (!child) return tl::unexpected(child.error());
  const auto counts = first_line(child->output);
  std::fclose(child->output);
  if (!ended_in_order(child->process) || !counts.is_object()) {
    return tl::unexpected(failure_with_log("its rows could not be counted", log()));
  }
  return Rows{.results = counts.at("results").get<std::size_t>(),
              .dead_letters = counts.at("dead_letters").get<std::size_t>()};
}

} // namespace onced::bench
