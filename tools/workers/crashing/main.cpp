// A program that embeds a worker and has a handler which ends it: for rehearsals and tests of what becomes of such a
// job. A job of the type `crash` names a `file` and how many `times`: the handler appends a line to the file, aborts
// the process while `times` is greater than the number of its lines, and else returns that number. Never for service.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/messagepack.hpp"
#include "onced/worker.hpp"

namespace onced::crashing {
namespace {

std::uint64_t add_line(const std::string &path) {
  std::ofstream(path, std::ios::app) << "run\n";
  std::ifstream file(path);
  std::uint64_t lines = 0;
  for (std::string line; std::getline(file, line);)
    ++lines;
  return lines;
}

HandlerResult crash(const HandlerCall &call) {
  std::vector<messagepack::Token> tokens;
  const bool whole = messagepack::tokenize(call.payload, tokens, 8);
  messagepack::TokenReader reader(tokens);
  reader.require(whole && reader.map() == 2 && reader.string() == "file");
  const std::string file(reader.string());
  reader.require(reader.string() == "times");
  const std::uint64_t times = reader.positive();
  if (!reader.at_end()) return Invalid{"its fields are file and times"};
  const std::uint64_t lines = add_line(file);
  if (times > lines) std::abort();
  Done done;
  messagepack::Writer(done.result).positive(lines);
  return done;
}

int run(const std::vector<std::string> &words) {
  WorkerOptions options;
  bool known = words.size() % 2 == 0;
  for (std::size_t at = 0; at + 1 < words.size(); at += 2) {
    if (words[at] == "--data") {
      options.store.directory = words[at + 1];
    } else if (words[at] == "--jobs") {
      options.jobs_endpoint = words[at + 1];
    } else if (words[at] == "--replies") {
      options.replies_endpoint = words[at + 1];
    } else {
      known = false;
    }
  }
  if (options.store.directory.empty() || !known) {
    fmt::print(stderr, "usage: onced-crashing --data DIR --jobs ENDPOINT --replies ENDPOINT\n");
    return 64;
  }
  sigset_t stopping; // blocked before there are other threads, and then waited for
  sigemptyset(&stopping);
  sigaddset(&stopping, SIGTERM);
  sigaddset(&stopping, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stopping, nullptr);

  Handlers handlers = built_in_handlers();
  const auto added = handlers.add_inline("crash", crash);
  SystemClock clock;
  SystemRandom random;
  SilentLog log;
  const auto worker = Worker::start(options, std::move(handlers), clock, random, log);
  if (!added || !worker) {
    fmt::print(stderr, "{}\n", describe(added ? worker.error() : added.error()));
    return 69;
  }
  fmt::print(R"({{"event":"ready","jobs":"{}","replies":"{}","boot":"{}","durability":"{}"}})"
             "\n",
             (*worker)->jobs_endpoint(), (*worker)->replies_endpoint(), to_hex((*worker)->boot().view()),
             name_of((*worker)->durability()));
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stopping, &signal);
  return 0; // the worker drains
}

} // namespace
} // namespace onced::crashing

int main(int argc, char **argv) {
  return onced::crashing::run({argv + 1, argv + argc});
}
