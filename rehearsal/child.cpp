#include "rehearsal/child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onced::rehearsal {
namespace {

constexpr std::size_t line_bytes_max = std::size_t{64} * 1024;
constexpr std::size_t lines_kept_max = 1'000'000;

using Pipe = std::array<Descriptor, 2>;

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw StageFailure("no pipe: out of descriptors");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// In the child between fork and exec: only what may be called there.
[[noreturn]] void become(char *const *arguments, int input, int output, int log, int parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const bool orphaned = ::getppid() != parent; // the parent died before that
  if (!orphaned && ::dup2(input, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 &&
      ::dup2(log, STDERR_FILENO) >= 0) {
    ::execvp(arguments[0], arguments);
  }
  ::_exit(127);
}

} // namespace

Child::Child(Options options, const Patience &patience) : options_(std::move(options)), patience_(patience) {
  std::vector<std::string> words = options_.command;
  std::vector<char *> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const Descriptor log(::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.is_open()) throw StageFailure("the log of the " + role() + " cannot be written");
  Pipe input = make_pipe();
  Pipe output = make_pipe();
  stop_reading_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!stop_reading_.is_open()) throw StageFailure("no eventfd: out of descriptors");
  const int parent = ::getpid();
  started_at_ = patience_.clock().wall();
  id_ = ::fork();
  if (id_ == 0) become(arguments.data(), input[0].number(), output[1].number(), log.number(), parent);
  if (id_ < 0) throw StageFailure(options_.command.front() + " cannot be started");
  input_ = std::move(input[1]);
  output_ = std::move(output[0]);
  reader_ = std::thread([this] { read_lines(); });
}

Child::~Child() {
  kill_now();
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_reading_.number(), &one, sizeof one) == sizeof one);
  reader_.join();
}

void Child::kill_now() {
  signal(SIGKILL);
  while (is_running())
    ::waitid(P_PID, static_cast<id_t>(id_), nullptr, WEXITED | WNOWAIT);
}

// --- Its output ---------------------------------------------------------------------------------------------------

// False: there is no more.
bool Child::read_some(std::string &unread) {
  std::array<pollfd, 2> ready{{{.fd = output_.number(), .events = POLLIN, .revents = 0},
                               {.fd = stop_reading_.number(), .events = POLLIN, .revents = 0}}};
  if (::poll(ready.data(), ready.size(), -1) < 0) return errno == EINTR;
  if (ready[1].revents != 0) return false;
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(output_.number(), buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  unread.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

void Child::read_lines() {
  std::string unread;
  while (read_some(unread)) {
    std::size_t begin = 0;
    for (std::size_t end = unread.find('\n'); end != std::string::npos; end = unread.find('\n', begin)) {
      take_line(unread.substr(begin, end - begin));
      begin = end + 1;
    }
    unread.erase(0, begin);
    if (unread.size() > line_bytes_max) unread.resize(line_bytes_max); // whatever it is, it is no line of ours
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
  if (!status_) ::kill(id_, number);
}

bool Child::is_running() {
  const std::scoped_lock lock(mutex_);
  if (status_) return false;
  siginfo_t ended{};
  if (::waitid(P_PID, static_cast<id_t>(id_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != id_) {
    return true;
  }
  ::kill(-id_, SIGKILL); // what it has left behind, before its number is free
  int status = 0;
  ::waitpid(id_, &status, 0);
  status_ = status;
  ended_at_ = patience_.clock().wall();
  return false;
}

void Child::wait() {
  patience_.wait_until([this] { return !is_running() && output_has_ended(); }, named("the end"));
}

std::string Child::end() const {
  const int status = status_.value_or(0);
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return "exit " + std::to_string(WEXITSTATUS(status));
}

bool Child::was_killed() const {
  return status_ && WIFSIGNALED(*status_) && WTERMSIG(*status_) == SIGKILL;
}

std::string Child::named(const std::string &what) const {
  return what + " of the " + role() + "; see " + options_.log.filename().string();
}

} // namespace onced::rehearsal
