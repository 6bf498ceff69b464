#include "runner/command.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.hpp"
#include "runner/job_lock.hpp"

namespace onced::runner {
namespace {

using Reason = NotStarted::Reason;

constexpr int exit_refused = 65;   // EX_DATAERR
constexpr int exit_try_again = 75; // EX_TEMPFAIL
constexpr std::size_t read_bytes_max = 16UL * 1024;
// Between looks at a command where the kernel gives no descriptor to wait for its end by (before 5.3, some sandboxes).
constexpr std::chrono::milliseconds pause_between_looks{20};

tl::unexpected<NotStarted> not_started(const std::string &what, int error) {
  return tl::unexpected(NotStarted{Reason::command, what + ": " + std::generic_category().message(error)});
}

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

std::map<std::string, std::string> environment_of(const CommandOptions &options, const CommandJob &job) {
  auto environment = options.environment;
  environment["ONCED_OPERATION_ID"] = job.operation_id;
  environment["ONCED_IDEMPOTENCY_KEY"] = job.idempotency_key;
  environment["ONCED_ATTEMPT"] = std::to_string(job.attempt);
  environment["ONCED_FENCING_TOKEN"] = job.fencing_token;
  environment.erase("TRACEPARENT");
  if (!job.traceparent.empty() && !has_nul(job.traceparent)) environment["TRACEPARENT"] = job.traceparent;
  return environment;
}

// A file without a name for this content, where there is no memfd_create (some sandboxes). It is read-only, and not
// sealed: its owner could open it anew. The name is nobody else's, as the caller has the job's lock.
Descriptor unnamed_file(BytesView content, const std::filesystem::path &name) {
  ::unlink(name.c_str()); // of a process that was killed
  Descriptor writing(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400));
  if (!writing.is_open()) return {};
  Descriptor reading(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  const int failure = errno;
  ::unlink(name.c_str());
  errno = failure;
  if (!reading.is_open() || !write_all(writing, content)) return {};
  return reading;
}

// A nameless file with this content, which nobody can change. Not open where that cannot be, with errno set.
Descriptor sealed_file(BytesView content, const std::filesystem::path &lock_file) {
  Descriptor file(::memfd_create("onced-job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) return unnamed_file(content, lock_file.string() + ".input");
  if (!write_all(file, content)) return {};
  const bool sealed =
      ::lseek(file.number(), 0, SEEK_SET) == 0 &&
      ::fcntl(file.number(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
  return sealed ? std::move(file) : Descriptor();
}

} // namespace

Command::Command(const CommandOptions &options, Clock &clock) : options_(options), clock_(clock) {}

tl::expected<std::unique_ptr<Command>, NotStarted> Command::start(const CommandOptions &options, const CommandJob &job,
                                                                  Clock &clock) {
  // An id cut short would be another id.
  if (has_nul(job.operation_id) || has_nul(job.idempotency_key)) {
    return tl::unexpected(NotStarted{Reason::unfit, "its id has a NUL, which no environment variable can hold"});
  }
  std::unique_ptr<Command> command(new Command(options, clock)); // its constructor is private
  if (auto started = command->start_for(job); !started) return tl::unexpected(started.error());
  return command;
}

tl::expected<void, NotStarted> Command::start_for(const CommandJob &job) {
  auto lock = take_lock(job.lock_file);
  if (!lock) return tl::unexpected(NotStarted{Reason::command, describe(lock.error())});
  if (!*lock) return tl::unexpected(NotStarted{Reason::locked, "a former child of the job may still run"});

  ONCED_CHECK(!options_.arguments.empty());
  const Descriptor input = sealed_file(job.input, job.lock_file);
  if (!input.is_open()) return not_started("no file for its input", errno);
  auto output = make_pipe();
  auto errors = make_pipe();
  if (!output || !errors) return not_started("no descriptors", output ? errors.error() : output.error());
  auto process = ChildProcess::start({.words = options_.arguments,
                                      .environment = environment_of(options_, job),
                                      .input = input.number(),
                                      .output = output->writing.number(),
                                      .errors = errors->writing.number(),
                                      .kept = (*lock)->number(),
                                      .descriptors_max = options_.descriptors_max});
  if (!process) return not_started(options_.arguments.front() + " cannot be run", process.error());
  process_ = std::move(*process);
  output_ = std::move(output->reading);
  errors_ = std::move(errors->reading);
  kill_at_ = clock_.monotonic() + options_.deadline;
  return {};
}

CommandEnd Command::run(const CommandWatch &watch) {
  ONCED_CHECK(!process_.was_waited_for());
  next_beat_ = clock_.monotonic() + watch.heartbeat_interval;
  while (!ends_while_waiting(watch))
    keep_time(watch);
  process_.kill();
  for (std::size_t left = bytes_waiting(output_); left > 0 && output_.is_open();)
    left -= read_output(left);
  for (std::size_t left = bytes_waiting(errors_); left > 0 && errors_.is_open();)
    left -= read_errors(left);
  return end_with(process_.wait());
}

// Waits until anything happens, and does what that asks for. True: it has ended.
bool Command::ends_while_waiting(const CommandWatch &watch) {
  const int stop = asked_to_stop_ ? -1 : watch.stop; // which stays readable
  std::array<pollfd, 4> ready{{{process_.end_file(), POLLIN, 0},
                               {output_.number(), POLLIN, 0},
                               {errors_.number(), POLLIN, 0},
                               {stop, POLLIN, 0}}};
  const bool must_look = process_.end_file() < 0;
  MonotonicTime wake_at = killed_ ? MonotonicTime::max() : kill_at_;
  if (watch.heartbeat) wake_at = std::min(wake_at, next_beat_);
  if (must_look) wake_at = std::min(wake_at, clock_.monotonic() + pause_between_looks);
  const int changes = ::poll(ready.data(), ready.size(), poll_timeout(wake_at, clock_.monotonic()));
  if (ready[0].revents != 0 || (must_look && process_.has_ended())) return true;
  if (changes <= 0) return false;
  if (ready[1].revents != 0) read_output(read_bytes_max);
  if (ready[2].revents != 0) read_errors(read_bytes_max);
  if (ready[3].revents != 0) ask_to_stop();
  return false;
}

void Command::keep_time(const CommandWatch &watch) {
  const MonotonicTime now = clock_.monotonic();
  if (watch.heartbeat && now >= next_beat_) {
    next_beat_ = now + watch.heartbeat_interval;
    if (!watch.heartbeat()) kill_because("its lease was lost");
  }
  if (now < kill_at_) return;
  kill_because(asked_to_stop_ ? "it was stopped, as the worker stops"
                              : "its deadline of " + std::to_string(options_.deadline.count()) + " ms passed");
}

void Command::ask_to_stop() {
  asked_to_stop_ = true;
  if (killed_) return;
  cause_ = "it was stopped, as the worker stops";
  process_.signal_group(SIGTERM);
  kill_at_ = std::min(kill_at_, clock_.monotonic() + options_.grace);
}

// The first cause counts.
void Command::kill_because(std::string cause) {
  if (killed_) return;
  killed_ = true;
  cause_ = std::move(cause);
  process_.kill();
}

std::size_t Command::read_output(std::size_t bytes_max) {
  const std::size_t room = options_.output_bytes_max - output_read_.size();
  const std::size_t count = read_some(output_, std::min(bytes_max, room + 1), output_read_);
  if (count > room) {
    kill_because("its output is over " + std::to_string(options_.output_bytes_max) + " bytes");
    output_ = Descriptor(); // after that, or it might end of it first, in a way of its own
  }
  return count;
}

std::size_t Command::read_errors(std::size_t bytes_max) {
  const std::size_t count = read_some(errors_, bytes_max, errors_read_);
  if (errors_read_.size() > options_.errors_bytes_max) {
    errors_read_.erase(0, errors_read_.size() - options_.errors_bytes_max);
  }
  return count;
}

CommandEnd Command::end_with(const ProcessEnd &end_of_process) {
  const std::optional<int> code = end_of_process.exit_code();
  const bool too_much = output_read_.size() > options_.output_bytes_max;
  const bool gave_up = asked_to_stop_ && output_read_.empty();
  CommandEnd end{
      .outcome = CommandEnd::Outcome::try_again, .output = {}, .errors = std::move(errors_read_), .cause = {}};
  if (code == 0 && !too_much && !gave_up) {
    end.outcome = CommandEnd::Outcome::done;
    end.output = std::move(output_read_);
  } else if (code == exit_refused) {
    end.outcome = CommandEnd::Outcome::refused;
    end.cause = "it refused the job (exit code 65)";
  } else {
    end.did_nothing = code == exit_try_again && !killed_;
    end.cause = cause_.empty() ? end_of_process.text() : std::move(cause_);
  }
  return end;
}

} // namespace onced::runner
