#include "send.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "json_lines.hpp"
#include "line_reader.hpp"
#include "onced/job.hpp"
#include "progress.hpp"
#include "signals.hpp"
#include "wire/raw_message.hpp"

namespace onced::tools {
namespace {

using std::chrono::milliseconds;

// How late a stop, or the end, is noticed by a thread that waits inside the sender.
constexpr milliseconds slice{20};
// A hostile message is at most so long; it exists for tests of the worker's limits, so it may exceed them.
constexpr std::size_t raw_message_bytes_max = 64 * limits::message_bytes_max;

std::string within_detail(std::string text) {
  text.resize(std::min(text.size(), limits::detail_bytes_max));
  return text;
}

Json line_of(const std::optional<std::string> &operation_id, const Settled &settled) {
  const OutcomeTraits &traits = traits_of(settled.outcome);
  Json line = Json::object();
  if (operation_id) line["operation_id"] = *operation_id;
  line["outcome"] = traits.name;
  if (!settled.result.empty()) {
    const auto result = json_of_messagepack(settled.result, Binaries::refused);
    if (result) {
      line["result"] = *result;
    } else {
      line["result_hex"] = to_hex(settled.result);
    }
  }
  if (!traits.success) line["detail"] = settled.detail;
  line["attempts"] = settled.attempts;
  if (settled.durability != Durability::fsync) line["durability"] = name_of(settled.durability);
  return line;
}

// One run of `send`. The thread that made it reads and submits; a second prints what settles. What is submitted and not
// yet printed is bounded by the sender.
class Run {
public:
  Run(const SendOptions &options, Sender &sender, StopEvent &stop, MonotonicTime deadline, Clock &clock, Output &output)
      : options_(options), sender_(sender), stop_(stop), deadline_(deadline), clock_(clock), output_(output) {}

  ExitCode run(const InputFile &file) {
    std::thread printer([this] { print_settled(); });
    const auto read = options_.raw ? send_raw(file) : send_lines(file);
    if (!read) fail(read.error());
    {
      const std::scoped_lock lock(mutex_);
      all_read_ = read && *read;
      reading_ended_ = true;
      submitted_one_.notify_one();
    }
    printer.join();
    return finish();
  }

private:
  // Both say whether everything was read and submitted.
  Result<bool> send_lines(const InputFile &file) {
    LineReader reader(file, line_bytes_max, stop_, deadline_);
    std::string_view line;
    for (;;) {
      const auto read = reader.next(line);
      if (!read) return tl::unexpected(read.error());
      if (*read == ReadEnd::end) return true;
      if (*read == ReadEnd::interrupted) return false;
      auto sent = send_line(reader.number(), *read, line);
      if (!sent || !*sent) return sent;
    }
  }

  Result<bool> send_line(std::uint64_t number, ReadEnd read, std::string_view line) {
    if (read == ReadEnd::too_long) {
      refuse(number, "a line of more than " + std::to_string(line_bytes_max) + " bytes");
      return true;
    }
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return true;
    if (const auto converted = messagepack_of_json(line, bytes_); !converted) {
      refuse(number, converted.error());
    } else if (const auto parsed = parser_.parse(bytes_, job_); !parsed) {
      refuse(number, std::string(name_of(parsed.error())));
    } else {
      return submit_copies(bytes_, job_.operation_id);
    }
    return true;
  }

  Result<bool> send_raw(const InputFile &file) {
    LineReader reader(file, limits::job_bytes_max, stop_, deadline_);
    Bytes bytes;
    const auto read = reader.rest(bytes);
    if (!read) return tl::unexpected(read.error());
    if (*read == ReadEnd::interrupted) return false;
    std::optional<std::string> operation_id;
    if (parser_.parse(bytes, job_)) operation_id = job_.operation_id;
    return submit_copies(bytes, operation_id);
  }

  void refuse(std::uint64_t number, std::string why) {
    not_success_ = true;
    output_.line({{"line", number}, {"outcome", "invalid"}, {"detail", within_detail(std::move(why))}});
  }

  Result<bool> submit_copies(const Bytes &job, const std::optional<std::string> &operation_id) {
    for (std::uint32_t copy = 0; copy < options_.copies; ++copy) {
      auto sent = submit(job, operation_id);
      if (!sent || !*sent) return sent;
    }
    return true;
  }

  Result<bool> submit(const Bytes &job, const std::optional<std::string> &operation_id) {
    while (!stop_.requested()) {
      const MonotonicTime now = clock_.monotonic();
      const auto sequence = sender_.submit(job, std::min(deadline_, now + slice));
      if (sequence) {
        const std::scoped_lock lock(mutex_);
        waiting_.emplace(number_of(*sequence), operation_id);
        ++submitted_;
        submitted_one_.notify_one();
        return true;
      }
      if (sequence.error().code != ErrorCode::timed_out) return tl::unexpected(sequence.error());
      if (now >= deadline_) return false;
    }
    return false;
  }

  void fail(const Error &error) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = error;
    stop_.request();
  }

  // The second thread.
  void print_settled() {
    Progress progress(clock_);
    bool flushed = true;
    while (!ended()) {
      const MonotonicTime now = clock_.monotonic();
      const auto settled = sender_.next_settled(flushed ? std::min(deadline_, now + slice) : now);
      if (settled) {
        print(*settled);
        flushed = false;
      } else if (settled.error().code != ErrorCode::timed_out) {
        fail(settled.error());
      } else {
        flushed = flush();
      }
      const std::scoped_lock lock(mutex_);
      progress.show(settled_, submitted_);
    }
  }

  bool ended() {
    const std::scoped_lock lock(mutex_);
    if (stop_.requested() || (reading_ended_ && settled_ == submitted_)) return true;
    return clock_.monotonic() >= deadline_;
  }

  bool flush() {
    if (const auto flushed = output_.flush(); !flushed) fail(flushed.error());
    return true;
  }

  // A job may settle before the thread that submitted it has come back with its sequence.
  void print(const Settled &settled) {
    std::unique_lock lock(mutex_);
    const std::uint64_t sequence = number_of(settled.sequence);
    submitted_one_.wait(lock, [&] { return waiting_.contains(sequence) || reading_ended_; });
    const auto submitted = waiting_.extract(sequence);
    if (submitted.empty()) return;
    ++settled_;
    lock.unlock();
    if (!traits_of(settled.outcome).success) not_success_ = true;
    output_.line(line_of(submitted.mapped(), settled));
    if (output_.failed()) flush();
  }

  // Both threads have ended. What has settled meanwhile is still told; then, what has not.
  ExitCode finish() {
    while (!waiting_.empty()) {
      const auto settled = sender_.next_settled(clock_.monotonic());
      if (!settled) break;
      print(*settled);
    }
    for (const auto &[sequence, operation_id] : waiting_) {
      Json line = Json::object();
      if (operation_id) line["operation_id"] = *operation_id;
      line["outcome"] = "unsettled";
      output_.line(line);
    }
    flush();
    return verdict();
  }

  ExitCode verdict() const {
    const bool complete = waiting_.empty() && all_read_;
    if (failure_) report(*failure_);
    if (!complete) {
      fmt::print(stderr, "onced: {} unsettled{}; to finish, send the same input again: nothing is done twice\n",
                 waiting_.size(), all_read_ ? "" : ", and the input was not read to its end");
    }
    if (failure_) return exit_code_of(failure_->code);
    if (!complete) return ExitCode::try_again;
    return not_success_ ? ExitCode::no : ExitCode::ok;
  }

  const SendOptions &options_;
  Sender &sender_;
  StopEvent &stop_;
  MonotonicTime deadline_;
  Clock &clock_;
  Output &output_;

  // The reading thread's, reused.
  JobParser parser_;
  Job job_;
  Bytes bytes_;

  std::atomic<bool> not_success_{false};
  std::mutex mutex_; // guards the rest
  std::condition_variable submitted_one_;
  std::map<std::uint64_t, std::optional<std::string>> waiting_; // operation ids of what is submitted and not printed
  std::uint64_t submitted_ = 0;
  std::uint64_t settled_ = 0;
  bool reading_ended_ = false;
  bool all_read_ = false;
  std::optional<Error> failure_;
};

ExitCode send_whole_message(const SendOptions &options, const InputFile &file, const StopEvent &stop,
                            MonotonicTime deadline) {
  LineReader reader(file, raw_message_bytes_max, stop, deadline);
  Bytes message;
  const auto read = reader.rest(message);
  if (!read) return report(read.error());
  if (*read == ReadEnd::interrupted) return ExitCode::try_again;
  if (message.size() > raw_message_bytes_max) {
    return report({ErrorCode::usage, file.name(), "longer than 64 MiB", "send less in one message"});
  }
  for (std::uint32_t copy = 0; copy < options.copies; ++copy) {
    if (const auto sent = wire::send_raw_message(options.sender.jobs_endpoint, message, deadline); !sent) {
      return report(sent.error());
    }
  }
  return ExitCode::ok;
}

} // namespace

ExitCode run_send(const SendOptions &options, Output &output) {
  SystemClock clock;
  SystemRandom random;
  const MonotonicTime deadline = clock.monotonic() + options.deadline;
  if (options.raw && options.raw_message) {
    return report({ErrorCode::usage, "--raw, --raw-message", "both are given", "give one of them"});
  }
  StopEvent stop;
  const SignalWatch signals([&](int) { stop.request(); });
  const auto file = InputFile::open(options.file);
  if (!file) return report(file.error());
  if (options.raw_message) return send_whole_message(options, *file, stop, deadline);
  ConsoleLog log(options.log_format, clock);
  const auto sender = Sender::start(options.sender, clock, random, log);
  if (!sender) return report(sender.error());
  return Run(options, **sender, stop, deadline, clock, output).run(*file);
}

} // namespace onced::tools
