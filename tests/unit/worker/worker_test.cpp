// A worker in this process: what it does with what arrives while it is told to drain, what it leaves when it cannot
// start, and the files of its directory. Not here: all that a worker promises (tests/contract, through real processes).
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <zmq.hpp>

#include "onced/worker.hpp"
#include "support/document.hpp"
#include "support/eventually.hpp"
#include "support/sanitized.hpp"
#include "support/store_harness.hpp"
#include "wire/messages.hpp"
#include "worker/query_turns.hpp"

namespace {

using CreateThread = int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

std::atomic<std::int64_t> threads_created{0};
std::atomic<std::int64_t> threads_allowed{INT64_MAX};

} // namespace

#ifndef ONCED_SANITIZED
// In front of the C library's: it counts the threads, and refuses those that are too many.
extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                              void *argument) noexcept {
  static const auto create = reinterpret_cast<CreateThread>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (++threads_created > threads_allowed) return EAGAIN;
  return create(thread, attributes, run, argument);
}
#endif

namespace onced::testing {
namespace {

// Keeps what a drained worker says, and lets a test act in the thread that tells of a wrong socket.
class ActingLog final : public EventLog {
public:
  void write(const Event &event) noexcept override {
    if (event.name == "peer.wrong_socket" && on_wrong_socket) on_wrong_socket();
    if (event.name != "worker.drained") return;
    ++drains;
    for (const auto &field : event.fields) {
      if (const auto *number = std::get_if<std::uint64_t>(&field.second)) drained[field.first] = *number;
    }
  }

  std::function<void()> on_wrong_socket;             // set before the worker starts
  std::map<std::string_view, std::uint64_t> drained; // the fields of the last drain
  int drains = 0;
};

struct WorkerHarness {
  WorkerHarness() {
    options.store.directory = directory.path() / "data";
    options.jobs_endpoint = options.replies_endpoint = "tcp://127.0.0.1:*";
  }
  Result<std::unique_ptr<Worker>> start() {
    Handlers handlers = built_in_handlers();
    REQUIRE(handlers
                .add_queued({.type = "slow", .handler = QueuedFunction([](const QueuedCall &) {
                                               return Done{.result = integer_result(1)};
                                             })})
                .has_value());
    return Worker::start(options, std::move(handlers), clock, random, log);
  }

  ScratchDirectory directory;
  SystemClock clock;
  SeededRandom random{7};
  ActingLog log;
  WorkerOptions options;
};

// The gateway tells of a greeting on the wrong socket when it has taken the message, and has not handed it over.
TEST_CASE("a message that is taken while the worker is told to drain is settled and counted") {
  WorkerHarness harness;
  std::atomic<Worker *> to_drain{nullptr};
  harness.log.on_wrong_socket = [&] {
    if (Worker *running = to_drain.exchange(nullptr); running != nullptr) running->drain();
  };
  const auto worker = harness.start();
  REQUIRE(worker.has_value());
  to_drain = worker->get();
  zmq::context_t context;
  zmq::socket_t jobs(context, zmq::socket_type::push);
  jobs.set(zmq::sockopt::linger, 0);
  jobs.connect((*worker)->jobs_endpoint());
  jobs.send(zmq::buffer(wire::encode_hello(SenderId{})), zmq::send_flags::none);
  REQUIRE(eventually([&] { return to_drain == nullptr; }));
  CHECK((*worker)->wait().has_value());
  CHECK(harness.log.drained["messages"] == 1);
  CHECK(harness.log.drained["deliveries"] == 1);
  CHECK(harness.log.drained["invalid"] == 1);
}

TEST_CASE("a worker that gets no more threads is refused and leaves nothing half started") {
  if (sanitized) return; // the sanitizer has a pthread_create of its own
  WorkerHarness harness;
  std::int64_t threads = 0;
  for (int run = 0; run < 2; ++run) { // the first start has the store's library begin threads that stay
    threads_created = 0;
    const auto worker = harness.start();
    REQUIRE(worker.has_value());
    threads = threads_created;
  }
  const std::int64_t own_threads = harness.options.threads + static_cast<std::int64_t>(worker::query_lanes) + 3 + 2;
  REQUIRE(threads >= own_threads);
  for (std::int64_t missing = 1; missing <= own_threads; ++missing) {
    CAPTURE(missing);
    threads_created = 0;
    threads_allowed = threads - missing;
    const auto refused = harness.start();
    threads_allowed = INT64_MAX;
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::out_of_resources);
    CHECK(refused.error().concerns == "the threads of the worker");
    CHECK(harness.log.drains == 2); // of the two workers that had started
    CHECK(DirectoryLock::take(harness.options.store.directory, DirectoryLock::Mode::exclusive).has_value());
  }
  CHECK(harness.start().has_value());
}

TEST_CASE("every file of a running worker's directory is in the table of the storage document") {
  std::set<std::string> documented;
  for (const auto &row : document_table("storage.md", "files")) {
    const std::string &name = row.at(0);
    documented.insert(name.ends_with('/') ? name.substr(0, name.size() - 1) : name);
  }
  WorkerHarness harness;
  const auto worker = harness.start();
  REQUIRE(worker.has_value());
  std::size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(harness.options.store.directory)) {
    CAPTURE(entry.path().filename().string());
    CHECK(documented.count(entry.path().filename().string()) == 1);
    ++files;
  }
  CHECK(files >= 6);
}

} // namespace
} // namespace onced::testing
