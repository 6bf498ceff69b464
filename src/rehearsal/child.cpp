#include "rehearsal/child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onced::rehearsal {
namespace {

using Pipe = std::array<int, 2>;

Pipe make_pipe() {
  Pipe ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw StageFailure("no pipe: out of descriptors");
  return ends;
}

// In the child between fork and exec: only what may be called there.
[[noreturn]] void become(char *const *arguments, int input, int output, int log, int parent) {
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
  const Pipe input = make_pipe();
  const Pipe output = make_pipe();
  const int log = ::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int parent = ::getpid();
  started_at_ = patience_.clock().wall();
  id_ = ::fork();
  if (id_ == 0) become(arguments.data(), input[0], output[1], log, parent);
  ::close(input[0]);
  ::close(output[1]);
  ::close(log);
  input_ = input[1];
  output_ = output[0];
  if (id_ < 0) throw StageFailure(options_.command.front() + " cannot be started");
  reader_ = std::thread([this] { read_lines(); });
}

Child::~Child() {
  signal(SIGKILL);
  if (is_running()) {
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  end_input();
  if (reader_.joinable()) reader_.join();
  ::close(output_);
}

void Child::read_lines() {
  std::string unread;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(output_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    unread.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
      const std::string line = unread.substr(0, end);
      unread.erase(0, end + 1);
      {
        const std::scoped_lock lock(mutex_);
        lines_.push_back(line);
      }
      if (options_.on_line) options_.on_line(*this, line);
    }
  }
  const std::scoped_lock lock(mutex_);
  output_ended_ = true;
}

void Child::answer() {
  const std::scoped_lock lock(mutex_);
  if (input_ >= 0) static_cast<void>(::write(input_, "\n", 1) == 1); // it may be gone
}

void Child::end_input() {
  const std::scoped_lock lock(mutex_);
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void Child::signal(int number) {
  const std::scoped_lock lock(mutex_);
  if (id_ > 0 && !status_) ::kill(id_, number);
}

bool Child::is_running() {
  const std::scoped_lock lock(mutex_);
  if (status_ || id_ <= 0) return false;
  int status = 0;
  if (::waitpid(id_, &status, WNOHANG) != id_) return true;
  status_ = status;
  ended_at_ = patience_.clock().wall();
  return false;
}

bool Child::output_has_ended() {
  const std::scoped_lock lock(mutex_);
  return output_ended_;
}

std::string Child::first_line() {
  patience_.wait_until([this] { return output_has_ended() || !lines().empty(); }, named("the first line"));
  const std::vector<std::string> printed = lines();
  if (printed.empty()) throw StageFailure("nothing was printed instead of " + named("a first line"));
  return printed.front();
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

std::vector<std::string> Child::lines() {
  const std::scoped_lock lock(mutex_);
  return lines_;
}

std::string Child::named(const std::string &what) const {
  return what + " of the " + role() + "; see " + options_.log.string();
}

} // namespace onced::rehearsal
