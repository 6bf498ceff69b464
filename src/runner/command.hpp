#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "base/child_process.hpp"
#include "onced/bytes.hpp"
#include "onced/clock.hpp"

namespace onced::runner {

// What a handler's configuration says of its command.
struct CommandOptions {
  // The program and its arguments. No shell reads them. A program without a slash is looked for in the PATH of
  // `environment`, or in the system's usual folders where that has none.
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment; // all that it gets, beside what concerns its job
  std::chrono::milliseconds deadline{60'000};     // after its start
  std::chrono::milliseconds grace{10'000};        // between the signals that ask it to stop and that make it
  std::size_t output_bytes_max = 256 * 1024;
  std::size_t errors_bytes_max = 4096;               // the end of its stderr that is kept
  std::optional<std::uint64_t> descriptors_max = {}; // its soft limit of open files; nothing: this process's
};

// One job as its command sees it. Borrowed while it is started.
struct CommandJob {
  BytesView input;                  // on stdin
  std::string_view operation_id;    // ONCED_OPERATION_ID
  std::string_view idempotency_key; // ONCED_IDEMPOTENCY_KEY
  std::uint32_t attempt = 1;        // ONCED_ATTEMPT
  std::string_view fencing_token;   // ONCED_FENCING_TOKEN
  std::string_view traceparent;     // TRACEPARENT, unless it is empty or has a NUL
  std::filesystem::path lock_file;  // of the job; made where there is none
};

struct NotStarted {
  enum class Reason : std::uint8_t {
    command, // it cannot be run, or nothing can: no such program, no right, out of processes or descriptors
    locked,  // somebody holds the job's lock: a former child, or what that has started
    unfit,   // the job can never be given to a command, as its ids cannot be told to one
  };
  Reason reason = Reason::command;
  std::string cause;
};

struct CommandEnd {
  enum class Outcome : std::uint8_t {
    done,      // exit 0
    refused,   // exit 65: for good
    try_again, // any other exit, a signal, the deadline, too much output, a lost lease, or it was stopped
  };
  Outcome outcome = Outcome::try_again;
  Bytes output;             // its stdout, at most output_bytes_max
  Bytes errors;             // the end of its stderr; any bytes, cut anywhere
  std::string cause;        // in words; empty where it is done
  bool did_nothing = false; // to be tried again, and nothing was done, as it says itself (exit 75)
};

// What may end a command before its time.
struct CommandWatch {
  // A descriptor, of an eventfd say, that becomes readable when the worker stops, and stays so; -1: none. SIGTERM is
  // then sent to the command's process group, and SIGKILL after the grace period. A command that ends within it is
  // taken at its word, but not for an exit 0 without output: that is also how many programs end when they are asked to.
  int stop = -1;
  // Called at every interval while the command runs. Where it returns false, its lease is lost and it is killed.
  std::function<bool()> heartbeat; // empty: none
  std::chrono::milliseconds heartbeat_interval{5000};
};

// A command that handles one job, as a process of its own: in a process group of its own, with stdin, stdout and
// stderr, the environment that is listed and nothing else of this process: no other descriptor, no blocked or ignored
// signal. stdin is a file that it can read and nobody can change, so it need not be read in time, to its end, or at
// all.
//
// It dies with this process, by the parent-death signal. What it has started may live on, but that too holds the lock
// of the job's file (job_lock.hpp), by an inherited descriptor: so after a crash, where the lock is free, nobody works
// on the job any more. A descendant that closes its descriptors gives that up.
//
// Made, run and destroyed by one thread, which must live as long as it: the kernel ties its death to that thread.
// Nobody else may wait for this process's children.
class Command {
public:
  // Starts it. `clock` must outlive it; its time must be the system's, as the kernel waits by that.
  [[nodiscard]] static tl::expected<std::unique_ptr<Command>, NotStarted> start(const CommandOptions &options,
                                                                                const CommandJob &job, Clock &clock);
  // Where it was not run, the end of this object kills its process group.
  ~Command() = default;
  Command(const Command &) = delete;
  Command &operator=(const Command &) = delete;

  // Blocks until it has ended. Once. What is left of its process group is killed then, so that nothing of it runs
  // beside the next attempt; what it wrote before is read to the end, but nobody is waited for.
  [[nodiscard]] CommandEnd run(const CommandWatch &watch);

private:
  Command(const CommandOptions &options, Clock &clock);
  [[nodiscard]] tl::expected<void, NotStarted> start_for(const CommandJob &job);
  [[nodiscard]] bool ends_while_waiting(const CommandWatch &watch);
  void keep_time(const CommandWatch &watch);
  void ask_to_stop();
  void kill_because(std::string cause);
  std::size_t read_output(std::size_t bytes_max);
  std::size_t read_errors(std::size_t bytes_max);
  [[nodiscard]] CommandEnd end_with(const ProcessEnd &end_of_process);

  CommandOptions options_;
  Clock &clock_;
  ChildProcess process_;
  Descriptor output_; // not open once it has ended
  Descriptor errors_;

  MonotonicTime kill_at_;
  MonotonicTime next_beat_;
  bool asked_to_stop_ = false;
  bool killed_ = false;
  std::string cause_; // why it was asked to stop or killed; the latest
  Bytes output_read_;
  Bytes errors_read_;
};

} // namespace onced::runner
