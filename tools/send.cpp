#include "send.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "base/json_reader.hpp"
#include "event_file.hpp"
#include "line_queue.hpp"
#include "line_reader.hpp"
#include "onced/job.hpp"
#include "progress.hpp"
#include "resources.hpp"
#include "signals.hpp"
#include "wire/raw_message.hpp"

namespace onced::tools {
namespace {

// A longer line cannot become a job within limits::job_bytes_max: four characters hardly ever make one byte less.
constexpr std::size_t line_bytes_max = 4 * limits::job_bytes_max;

using std::chrono::milliseconds;

// How late a stop, or the end, is noticed by a thread that waits inside the sender.
constexpr milliseconds slice{20};
// Jobs and bytes of jobs that go to the sender, and lines that go to the output, at once.
constexpr std::size_t group_jobs_max = 4096;
constexpr std::size_t group_bytes_max = 4UL * 1024 * 1024;
// A hostile message is at most so long; it exists for tests of the worker's limits, so it may exceed them.
constexpr std::size_t raw_message_bytes_max = 64 * limits::message_bytes_max;

// Some editors begin a file with it.
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

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

// What has become of the deliveries so far. Its user guards it.
struct Tally {
  std::uint64_t resumed = 0;   // were in the outbox at the start
  std::uint64_t submitted = 0; // by this run
  std::uint64_t settled = 0;
  std::array<std::uint64_t, outcome_table.size()> by_outcome{};
  std::uint32_t attempts_max = 0;

  void add(const Settled &job) {
    ++settled;
    ++by_outcome[static_cast<std::size_t>(job.outcome)];
    attempts_max = std::max(attempts_max, job.attempts);
  }
  [[nodiscard]] std::uint64_t unsettled() const { return resumed + submitted - settled; }
};

Json recovery_fields(std::vector<milliseconds> recoveries) {
  Json fields = Json::object();
  fields["recovery_ms"] = nullptr;
  fields["recovery_ms_max"] = nullptr;
  if (recoveries.empty()) return fields;
  std::sort(recoveries.begin(), recoveries.end());
  fields["recovery_ms"] = recoveries[(recoveries.size() - 1) / 2].count();
  fields["recovery_ms_max"] = recoveries.back().count();
  return fields;
}

Json stats_line(const Tally &tally, const SenderStats &stats, MonotonicTime::duration time,
                const SendOptions &options) {
  const double seconds = std::chrono::duration<double>(time).count();
  Json line{{"event", "stats"}, {"resumed", tally.resumed}, {"submitted", tally.submitted}};
  for (const OutcomeTraits &traits : outcome_table) {
    if (traits.final) line[std::string(traits.name)] = tally.by_outcome[static_cast<std::size_t>(traits.outcome)];
  }
  line["unsettled"] = tally.unsettled();
  line["attempts_max"] = tally.attempts_max;
  line["resends"] = stats.resends;
  line["lost"] = stats.lost;
  line["lost_replies"] = stats.lost_replies;
  line["ignored_replies"] = stats.ignored_replies;
  line["seconds"] = seconds;
  line["deliveries_per_second"] = static_cast<double>(tally.settled) / std::max(seconds, 1e-6);
  line["new_boots"] = stats.new_boots;
  line.update(recovery_fields(stats.recoveries));
  line["copies"] = options.copies;
  line["shuffle"] = options.sender.lab.shuffle;
  line["loss"] = options.sender.lab.loss_share;
  line["seed"] = options.sender.lab.seed;
  return line;
}

// Says why jobs do not settle: after 2 s without one that does, and again when the reason is another, ever more seldom.
// One thread.
class WaitingLog {
public:
  WaitingLog(Clock &clock, EventLog &log) : clock_(clock), log_(log), next_(clock.monotonic() + pause_) {}

  bool is_due(std::uint64_t settled, std::uint64_t unsettled) {
    const MonotonicTime now = clock_.monotonic();
    if (settled != settled_ || unsettled == 0) {
      settled_ = settled;
      next_ = now + pause_;
    }
    return now >= next_;
  }

  void tell(const Unsettled &why) {
    const std::string text = describe(why);
    if (text != told_) pause_ = std::min(2 * pause_, longest_pause);
    next_ = clock_.monotonic() + pause_;
    if (std::exchange(told_, text) == text) return;
    log_.write({.level = EventLevel::warning,
                .name = "send.waits",
                .fields = {{"cause", std::string(name_of(why.cause))}, {"detail", text}}});
  }

private:
  static constexpr std::chrono::seconds first_pause{2};
  static constexpr std::chrono::seconds longest_pause{60};

  Clock &clock_;
  EventLog &log_;
  std::chrono::seconds pause_ = first_pause;
  MonotonicTime next_;
  std::uint64_t settled_ = 0;
  std::string told_;
};

// One run of `send`. The thread that made it reads and submits; a second prints what settles. What is in memory of what
// is submitted and not yet printed is bounded by the sender.
class SendRun {
public:
  SendRun(const SendOptions &options, Sender &sender, StopEvent &stop, MonotonicTime deadline, Clock &clock,
          EventLog &log, Output &output)
      : options_(options), sender_(sender), stop_(stop), deadline_(deadline), clock_(clock), output_(output),
        started_(clock.monotonic()), waiting_log_(clock, log) {
    tally_.resumed = sender.stats().resumed; // some of them may have settled already
  }

  // `file`: none where there is only an outbox to go on with.
  ExitCode run(const InputFile *file) {
    std::thread printer([this] { print_settled(); });
    const auto read = file == nullptr ? Result<bool>(true) : options_.raw ? send_raw(*file) : send_lines(*file);
    tell_hints();
    if (!read) fail(read.error());
    {
      const std::scoped_lock lock(mutex_);
      all_read_ = read && *read;
      reading_ended_ = true;
      submitted_some_.notify_one();
    }
    printer.join();
    return finish();
  }

private:
  // Jobs that go to the sender together: with an outbox, by one fdatasync.
  struct Group {
    std::vector<Bytes> jobs;
    std::vector<std::optional<std::string>> operation_ids;
    std::size_t bytes = 0;

    [[nodiscard]] bool is_full() const { return jobs.size() >= group_jobs_max || bytes >= group_bytes_max; }
  };

  [[nodiscard]] bool has_outbox() const { return !options_.sender.outbox.empty(); }

  // These say whether everything was read and submitted.
  Result<bool> send_lines(const InputFile &file) {
    LineReader reader(file, line_bytes_max, stop_, deadline_);
    std::string_view line;
    for (;;) {
      // Nothing waits for more lines to come.
      if (!reader.has_line()) {
        auto sent = submit_group();
        if (!sent || !*sent) return sent;
      }
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
    if (number == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return true;
    if (const auto converted = messagepack_of_json(line, bytes_); !converted) {
      spread_over_lines_ = spread_over_lines_ || only_begins(line);
      refuse(number, converted.error());
    } else if (const auto parsed = parser_.parse(bytes_, job_); !parsed) {
      refuse(number, std::string(name_of(parsed.error())));
    } else {
      return add_copies(bytes_, job_.operation_id);
    }
    return true;
  }

  Result<bool> send_raw(const InputFile &file) {
    LineReader reader(file, limits::job_bytes_max, stop_, deadline_);
    Bytes bytes;
    const auto read = reader.rest(bytes);
    if (!read) return tl::unexpected(read.error());
    if (*read == ReadEnd::interrupted) return false;
    // No bytes are a job that is invalid, where they are named. With an outbox they are no input: it goes on.
    if (bytes.empty() && options_.file.empty()) return true;
    std::optional<std::string> operation_id;
    if (parser_.parse(bytes, job_)) operation_id = job_.operation_id;
    auto added = add_copies(bytes, operation_id);
    if (!added || !*added) return added;
    return submit_group();
  }

  // A line such as `{` or `[`, or one that ends in `,`: the beginning of JSON that goes on.
  static bool only_begins(std::string_view line) {
    const char last = line[line.find_last_not_of(" \t\r")];
    return last == '{' || last == '[' || last == ',';
  }

  void tell_hints() const {
    if (!spread_over_lines_) return;
    tell_on_stderr(
        "onced: each line must be one whole job, and some lines only begin one; jq -c . writes each on one line\n");
  }

  void refuse(std::uint64_t number, std::string why) {
    not_success_ = true;
    output_.line({{"line", number}, {"outcome", "invalid"}, {"detail", within_detail(std::move(why))}});
  }

  Result<bool> add_copies(const Bytes &job, const std::optional<std::string> &operation_id) {
    for (std::uint32_t copy = 0; copy < options_.copies; ++copy) {
      group_.jobs.push_back(job);
      group_.operation_ids.push_back(operation_id);
      group_.bytes += job.size();
      if (!group_.is_full()) continue;
      auto sent = submit_group();
      if (!sent || !*sent) return sent;
    }
    return true;
  }

  Result<bool> submit_group() {
    if (group_.jobs.empty()) return true;
    while (!stop_.requested()) {
      const MonotonicTime now = clock_.monotonic();
      const auto sequences = sender_.submit(group_.jobs, std::min(deadline_, now + slice));
      if (sequences) {
        took_over(*sequences);
        return true;
      }
      if (sequences.error().code != ErrorCode::timed_out) return tl::unexpected(sequences.error());
      if (now >= deadline_) return false;
    }
    return false;
  }

  void took_over(const std::vector<Sequence> &sequences) {
    const std::scoped_lock lock(mutex_);
    // An outbox may hold more than memory does, and gives each job back when it settles.
    for (std::size_t at = 0; !has_outbox() && at < sequences.size(); ++at)
      waiting_.emplace(number_of(sequences[at]), std::move(group_.operation_ids[at]));
    tally_.submitted += sequences.size();
    group_ = {};
    submitted_some_.notify_one();
  }

  void fail(const Error &error) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = error;
    stop_.request();
  }

  // The second thread.
  void print_settled() {
    Progress progress(clock_);
    while (!ended()) {
      const MonotonicTime now = clock_.monotonic();
      const auto settled = sender_.next_settled(std::min(deadline_, now + slice), group_jobs_max);
      if (settled) {
        print(*settled);
      } else if (settled.error().code != ErrorCode::timed_out) {
        fail(settled.error());
      } else {
        flush(); // lines that the first thread has refused
      }
      const std::scoped_lock lock(mutex_);
      progress.show(tally_.settled, tally_.resumed + tally_.submitted);
      if (waiting_log_.is_due(tally_.settled, tally_.unsettled())) waiting_log_.tell(sender_.why_unsettled());
    }
  }

  bool ended() {
    const std::scoped_lock lock(mutex_);
    if (stop_.requested() || (reading_ended_ && tally_.unsettled() == 0)) return true;
    return clock_.monotonic() >= deadline_;
  }

  void flush() {
    if (const auto flushed = output_.flush(); !flushed) fail(flushed.error());
  }

  // Flushed before the sender is asked for more, as only then it forgets them.
  void print(const std::vector<Settled> &settled) {
    for (const Settled &job : settled)
      print(job);
    flush();
  }

  void print(const Settled &settled) {
    const auto operation_id =
        has_outbox() ? parsed_operation_id(settled.job) : submitted_operation_id(settled.sequence);
    if (!operation_id) return;
    {
      const std::scoped_lock lock(mutex_);
      tally_.add(settled);
    }
    if (!traits_of(settled.outcome).success) not_success_ = true;
    output_.line(line_of(*operation_id, settled));
  }

  std::optional<std::optional<std::string>> parsed_operation_id(const Bytes &job) {
    if (!settled_parser_.parse(job, settled_job_)) return std::optional<std::string>();
    return settled_job_.operation_id;
  }

  // A job may settle before the thread that submitted it has come back with its sequence. Nothing: the run has ended
  // before it has.
  std::optional<std::optional<std::string>> submitted_operation_id(Sequence sequence) {
    std::unique_lock lock(mutex_);
    const std::uint64_t number = number_of(sequence);
    submitted_some_.wait(lock, [&] { return waiting_.contains(number) || reading_ended_; });
    auto submitted = waiting_.extract(number);
    if (submitted.empty()) return std::nullopt;
    return std::move(submitted.mapped());
  }

  // Both threads have ended. What has settled meanwhile is still told; then, what has not.
  ExitCode finish() {
    while (const auto settled = sender_.next_settled(clock_.monotonic(), group_jobs_max))
      print(*settled);
    for (const auto &[sequence, operation_id] : waiting_) {
      Json line = Json::object();
      if (operation_id) line["operation_id"] = *operation_id;
      line["outcome"] = "unsettled";
      const Unsettled why = sender_.why_unsettled(Sequence{sequence});
      line["cause"] = name_of(why.cause);
      line["detail"] = describe(why);
      if (why.cause == UnsettledCause::accepted) ++accepted_;
      output_.line(line);
    }
    const SenderLab &lab = options_.sender.lab;
    if (options_.stats || lab.shuffle || lab.loss_share > 0 || lab.lose_first_replies) {
      output_.line(stats_line(tally_, sender_.stats(), clock_.monotonic() - started_, options_));
    }
    flush();
    return verdict();
  }

  ExitCode verdict() const {
    const bool complete = tally_.unsettled() == 0 && all_read_;
    if (failure_) report(*failure_);
    const std::string why = complete ? std::string() : ": " + describe(sender_.why_unsettled());
    if (!complete && has_outbox()) {
      const std::string outbox = options_.sender.outbox.string();
      tell_on_stderr(fmt::format("onced: {} jobs are kept in {}{}; run onced send --resume --outbox {} to go on{}\n",
                                 sender_.unsettled(), outbox, sender_.unsettled() == 0 ? std::string() : why, outbox,
                                 all_read_ ? ""
                                           : "; the input was not read to its end: send it again, nothing is done "
                                             "twice"));
    } else if (!complete) {
      const std::string accepted = accepted_ == 0 ? std::string() : fmt::format(" ({} of them accepted)", accepted_);
      tell_on_stderr(fmt::format(
          "onced: {} unsettled{}{}{}; to finish, send the same input again: nothing is done twice\n", waiting_.size(),
          accepted, waiting_.empty() ? std::string() : why, all_read_ ? "" : "; the input was not read to its end"));
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
  MonotonicTime started_;
  std::uint64_t accepted_ = 0; // of what is unsettled in the end

  // The reading thread's, reused.
  JobParser parser_;
  Job job_;
  Bytes bytes_;
  Group group_;
  bool spread_over_lines_ = false; // a line that was refused is a part of JSON

  // The printing thread's.
  WaitingLog waiting_log_;
  JobParser settled_parser_;
  Job settled_job_;

  std::atomic<bool> not_success_{false};
  std::mutex mutex_; // guards the rest
  std::condition_variable submitted_some_;
  // Without an outbox: operation ids of what is submitted and not printed.
  std::map<std::uint64_t, std::optional<std::string>> waiting_;
  Tally tally_;
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

// `--resume` reads nothing, so nothing may say what to read.
Result<void> check_resume(const SendOptions &options) {
  if (options.sender.outbox.empty()) {
    return tl::unexpected(
        Error{ErrorCode::usage, "--resume", "there is no outbox to go on with", "give --outbox DIR too"});
  }
  if (options.file.empty() && !options.raw) return {};
  return tl::unexpected(Error{ErrorCode::usage, options.raw ? "--resume, --raw" : "--resume, FILE",
                              "--resume reads no jobs, and jobs are given", "leave one of the two out"});
}

// Whether there is input beside what the outbox holds. With an outbox and no FILE that is standard input, unless a
// person would have to type it. An input that is empty, as /dev/null is, leaves what the outbox holds.
bool reads_input(const SendOptions &options) {
  if (options.resume) return false;
  return !options.file.empty() || options.raw || ::isatty(STDIN_FILENO) == 0;
}

// ZeroMQ's threads and descriptors, and our own; and those of RocksDB for an outbox, with up to 512 tables. The memory
// is that of jobs that wait, twice, with the program.
Needs needs_of(const SendOptions &options) {
  const bool has_outbox = !options.sender.outbox.empty();
  return {.threads = has_outbox ? 10U : 5U,
          .descriptors = has_outbox ? 640U : 64U,
          .memory_bytes = 2 * limits::sender_bytes_max + limits::process_bytes};
}

// The options as they are meant.
Result<SendOptions> completed(SendOptions options, Random &random) {
  if (options.raw && options.raw_message) {
    return tl::unexpected(Error{ErrorCode::usage, "--raw, --raw-message", "both are given", "give one of them"});
  }
  if (options.raw_message && !options.sender.outbox.empty()) {
    return tl::unexpected(Error{ErrorCode::usage, "--raw-message, --outbox",
                                "a message without replies is never settled, so no outbox keeps it",
                                "give one of them"});
  }
  if (options.resume) {
    if (auto checked = check_resume(options); !checked) return tl::unexpected(checked.error());
  }
  options.sender.lab.seed = options.seed ? *options.seed : random.next();
  if (options.file.empty() && options.sender.outbox.empty()) options.file = "-";
  return options;
}

} // namespace

ExitCode run_send(const SendOptions &given, Output &output) {
  SystemClock clock;
  SystemRandom random;
  const auto options = completed(given, random);
  if (!options) return report(options.error());
  const MonotonicTime deadline = clock.monotonic() + options->deadline;
  StopEvent stop;
  const SignalWatch signals([&](int) { stop.request(); });
  output.give_up_after(stop.descriptor());
  std::optional<InputFile> file;
  if (reads_input(*options)) {
    auto opened = InputFile::open(options->file.empty() ? "-" : options->file);
    if (!opened) return report(opened.error());
    file.emplace(std::move(*opened));
  }
  if (options->raw_message) return send_whole_message(*options, *file, stop, deadline);
  if (const auto taken = take_resources(needs_of(*options)); !taken) return lacking(taken.error());
  ConsoleLog log(options->log_format, clock);
  const auto events = EventFile::open(options->events, clock);
  if (!events) return report(events.error());
  SenderOptions sender_options = options->sender;
  sender_options.deliveries = events->get();
  const auto sender = Sender::start(sender_options, clock, random, log);
  if (!sender) return report(sender.error());
  const ExitCode code = SendRun(*options, **sender, stop, deadline, clock, log, output).run(file ? &*file : nullptr);
  if (*events) (*events)->tell_dropped_to(log);
  return code;
}

} // namespace onced::tools
