#include "worker_process.hpp"

#include <csignal>
#include <fstream>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "transport.hpp"
#include "wire/query.hpp"

namespace onced::bench {
namespace {

Error failure(const std::string &concerns, const std::string &cause) {
  return {.code = ErrorCode::internal, .concerns = concerns, .cause = cause, .remedy = "run it by hand to see why"};
}

struct Child {
  ChildProcess process;
  ChildOutput output;
};

// What it logs goes to `log`.
Result<Child> spawn_child(const std::vector<std::string> &words, const std::filesystem::path &log) {
  auto output = make_pipe();
  if (!output) return tl::unexpected(failure(words.front(), "no pipe"));
  const Descriptor log_file = open_log(log);
  auto process = ChildProcess::start(
      {.words = words, .environment = {}, .output = output->writing.number(), .errors = log_file.number()});
  if (!process) return tl::unexpected(failure(words.front(), "cannot be started"));
  return Child{.process = std::move(*process), .output = ChildOutput(std::move(output->reading))};
}

Error failure_with_log(const std::string &cause, const std::filesystem::path &log) {
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return failure("the worker", cause + (text.empty() ? "" : "; its log:\n" + text));
}

// The first line that the child prints, as JSON; null where it is none.
nlohmann::json first_line(ChildOutput &output) {
  return nlohmann::json::parse(output.next_line(MonotonicTime::max()).value_or(""), nullptr, false);
}

} // namespace

WorkerProcess::WorkerProcess(std::string command, ScratchDirectory directory)
    : command_(std::move(command)), directory_(std::move(directory)) {}

Result<WorkerProcess> WorkerProcess::start(const std::string &command, const std::vector<std::string> &arguments,
                                           const std::string &transport, const std::filesystem::path &parent) {
  auto directory = ScratchDirectory::make(parent);
  if (!directory) return tl::unexpected(directory.error());
  WorkerProcess worker(command, std::move(*directory));
  if (auto spawned = worker.spawn(arguments, transport); !spawned) return tl::unexpected(spawned.error());
  return worker;
}

Result<void> WorkerProcess::spawn(const std::vector<std::string> &arguments, const std::string &transport) {
  const std::string data = directory_.path() / "data";
  std::vector<std::string> words{command_,    "serve",
                                 "--data",    data,
                                 "--jobs",    endpoint_to_bind(transport, directory_.path(), "jobs"),
                                 "--replies", endpoint_to_bind(transport, directory_.path(), "replies"),
                                 "--senders", "1"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto child = spawn_child(words, log());
  if (!child) return tl::unexpected(child.error());
  process_ = std::move(child->process);
  output_ = std::move(child->output);
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
  process_.signal(SIGTERM);
  if (!process_.wait().is_success()) {
    return tl::unexpected(failure_with_log("it did not end in order", log()));
  }
  auto child = spawn_child({command_, "count", "--data", directory_.path() / "data"}, log());
  if (!child) return tl::unexpected(child.error());
  const auto counts = first_line(child->output);
  if (!child->process.wait().is_success() || !counts.is_object()) {
    return tl::unexpected(failure_with_log("its rows could not be counted", log()));
  }
  return Rows{.results = counts.at("results").get<std::size_t>(),
              .dead_letters = counts.at("dead_letters").get<std::size_t>()};
}

} // namespace onced::bench
