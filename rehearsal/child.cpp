#include "rehearsal/child.hpp"

#include <csignal>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace onced::rehearsal {
namespace {

constexpr std::size_t line_bytes_max = std::size_t{64} * 1024; // a longer one is none of ours
constexpr std::size_t lines_kept_max = 1'000'000;

Pipe pipe_for_child() {
  auto pipe = make_pipe();
  if (!pipe) throw StageFailure("no pipe: out of descriptors");
  return std::move(*pipe);
}

} // namespace

Child::Child(Options options, const Patience &patience) : options_(std::move(options)), patience_(patience) {
  const Descriptor log = open_log(options_.log);
  if (!log.is_open()) throw StageFailure("the log of the " + role() + " cannot be written");
  Pipe input = pipe_for_child();
  Pipe output = pipe_for_child();
  started_at_ = patience_.clock().wall();
  auto started = ChildProcess::start({.words = options_.command,
                                      .environment = {},
                                      .input = input.reading.number(),
                                      .output = output.writing.number(),
                                      .errors = log.number()});
  if (!started) {
    throw StageFailure(options_.command.front() +
                       " cannot be started: " + std::generic_category().message(started.error()));
  }
  process_ = std::move(*started);
  input_ = std::move(input.writing);
  output_ = ChildOutput(std::move(output.reading), line_bytes_max);
  reader_ = std::thread([this] { read_lines(); });
}

Child::~Child() {
  kill_now();
  stop_reading_.ring();
  reader_.join();
}

void Child::kill_now() {
  signal(SIGKILL);
  static_cast<void>(process_.ends_before(MonotonicTime::max()));
  static_cast<void>(is_running());
}

// --- Its output ---------------------------------------------------------------------------------------------------

void Child::read_lines() {
  while (!output_.has_ended() && output_.read(MonotonicTime::max(), stop_reading_.descriptor())) {
    while (auto line = output_.take_line())
      take_line(std::move(*line));
  }
  const std::scoped_lock lock(mutex_);
  output_ended_ = true;
}

void Child::take_line(std::string line) {
  if (options_.on_line) return options_.on_line(*this, line);
  const std::scoped_lock lock(mutex_);
  if (lines_.size() < lines_kept_max) lines_.push_back(std::move(line));
}

std::vector<std::string> Child::lines() {
  const std::scoped_lock lock(mutex_);
  return lines_;
}

bool Child::has_printed() {
  const std::scoped_lock lock(mutex_);
  return !lines_.empty();
}

bool Child::output_has_ended() {
  const std::scoped_lock lock(mutex_);
  return output_ended_;
}

std::string Child::first_line() {
  patience_.wait_until([this] { return output_has_ended() || has_printed(); }, named("the first line"));
  const std::vector<std::string> printed = lines();
  if (printed.empty()) throw StageFailure("nothing was printed instead of " + named("a first line"));
  return printed.front();
}

// --- Its life -----------------------------------------------------------------------------------------------------

void Child::answer() {
  static_cast<void>(::write(input_.number(), "\n", 1) == 1); // it may be gone
}

void Child::signal(int number) {
  const std::scoped_lock lock(mutex_);
  process_.signal(number);
}

bool Child::is_running() {
  const std::scoped_lock lock(mutex_);
  if (end_ || !process_.has_ended()) return !end_;
  end_ = process_.wait();
  ended_at_ = patience_.clock().wall();
  return false;
}

void Child::wait() {
  patience_.wait_until([this] { return !is_running() && output_has_ended(); }, named("the end"));
}

std::string Child::end() const {
  if (!end_) return {};
  const auto code = end_->exit_code();
  return code ? "exit " + std::to_string(*code) : end_->text();
}

bool Child::was_killed() const {
  return end_ && end_->is_kill();
}

std::string Child::named(const std::string &what) const {
  return what + " of the " + role() + "; see " + options_.log.filename().string();
}

} // namespace onced::rehearsal
