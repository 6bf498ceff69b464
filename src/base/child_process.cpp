#include "base/child_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <limits>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onced {
namespace {

constexpr std::size_t read_bytes_max = 64UL * 1024;
// Where the kernel gives no file to wait for the end of a child by.
constexpr std::chrono::milliseconds pause_between_looks{5};

} // namespace

// --- Its end --------------------------------------------------------------------------------------------------------

std::optional<int> ProcessEnd::exit_code() const {
  if (!status_ || !WIFEXITED(*status_)) return std::nullopt;
  return WEXITSTATUS(*status_);
}

std::optional<int> ProcessEnd::signal() const {
  if (!status_ || !WIFSIGNALED(*status_)) return std::nullopt;
  return WTERMSIG(*status_);
}

bool ProcessEnd::is_kill() const {
  return signal() == SIGKILL;
}

std::string ProcessEnd::text() const {
  if (const auto code = exit_code()) return "exit code " + std::to_string(*code);
  if (const auto number = signal()) return "killed by signal " + std::to_string(*number);
  return "its exit status was lost: another part of the program waited for it";
}

// --- Its life -------------------------------------------------------------------------------------------------------

tl::expected<ChildProcess, int> ChildProcess::start(const Program &program) {
  return spawn(program).map([](pid_t id) { return ChildProcess(id); });
}

tl::expected<ChildProcess, int> ChildProcess::start_copy(const std::function<int()> &work) {
  return spawn_copy(work).map([](pid_t id) { return ChildProcess(id); });
}

// A system call, as glibc 2.36 declares its function without C linkage.
ChildProcess::ChildProcess(pid_t id) : id_(id), end_file_(static_cast<int>(::syscall(SYS_pidfd_open, id, 0))) {}

ChildProcess::ChildProcess(ChildProcess &&other) noexcept
    : id_(std::exchange(other.id_, -1)), end_file_(std::move(other.end_file_)), end_(other.end_) {}

ChildProcess &ChildProcess::operator=(ChildProcess &&other) noexcept {
  std::swap(id_, other.id_);
  std::swap(end_file_, other.end_file_);
  std::swap(end_, other.end_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (id_ < 0 || end_) return;
  kill();
  wait();
}

void ChildProcess::signal(int number) const {
  if (id_ > 0 && !end_) ::kill(id_, number);
}

void ChildProcess::signal_group(int number) const {
  if (id_ > 0 && !end_) ::kill(-id_, number);
}

void ChildProcess::kill() const {
  signal_group(SIGKILL);
  signal(SIGKILL);
}

bool ChildProcess::has_ended() const {
  if (id_ < 0 || end_) return true;
  siginfo_t ended{};
  if (::waitid(P_PID, static_cast<id_t>(id_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return errno == ECHILD;
  return ended.si_pid == id_;
}

bool ChildProcess::ends_before(MonotonicTime deadline) const {
  while (!has_ended()) {
    const MonotonicTime now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    pollfd ready{end_file(), POLLIN, 0};
    if (end_file_.is_open()) {
      ::poll(&ready, 1, poll_timeout(deadline, now));
    } else {
      std::this_thread::sleep_for(pause_between_looks);
    }
  }
  return true;
}

ProcessEnd ChildProcess::wait() {
  if (end_) return *end_;
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(id_), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  signal_group(SIGKILL); // before its number is free
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(id_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  end_.emplace(reaped < 0 ? std::nullopt : std::optional(status));
  return *end_;
}

// --- Its output -----------------------------------------------------------------------------------------------------

std::size_t bytes_waiting(const Descriptor &pipe) {
  int count = 0;
  if (!pipe.is_open() || ::ioctl(pipe.number(), FIONREAD, &count) != 0) return 0;
  return static_cast<std::size_t>(count);
}

std::size_t read_some(Descriptor &pipe, std::size_t bytes_max, Bytes &to) {
  std::array<char, read_bytes_max> buffer{};
  const ssize_t count = ::read(pipe.number(), buffer.data(), std::min(bytes_max, buffer.size()));
  if (count == 0 || (count < 0 && errno != EINTR)) pipe = Descriptor();
  if (count <= 0) return 0;
  to.append(buffer.data(), static_cast<std::size_t>(count));
  return static_cast<std::size_t>(count);
}

int poll_timeout(MonotonicTime deadline, MonotonicTime now) {
  if (deadline == MonotonicTime::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
}

bool ChildOutput::read(MonotonicTime deadline, int interrupt) {
  while (pipe_.is_open()) {
    std::array<pollfd, 2> ready{{{pipe_.number(), POLLIN, 0}, {interrupt, POLLIN, 0}}};
    const int changes = ::poll(ready.data(), ready.size(), poll_timeout(deadline, std::chrono::steady_clock::now()));
    if (changes == 0 || ready[1].revents != 0) return false;
    if (changes < 0) continue; // a signal
    unread_.resize(std::min(unread_.size(), unread_bytes_max_));
    searched_ = std::min(searched_, unread_.size());
    if (read_some(pipe_, read_bytes_max, unread_) > 0) break;
  }
  return true;
}

std::optional<std::string> ChildOutput::take_line() {
  const std::size_t end = unread_.find('\n', searched_);
  searched_ = end == std::string::npos ? unread_.size() : 0;
  if (end == std::string::npos) return std::nullopt;
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::string ChildOutput::take_rest() {
  searched_ = 0;
  return std::exchange(unread_, {});
}

std::optional<std::string> ChildOutput::next_line(MonotonicTime deadline) {
  for (;;) {
    if (auto line = take_line()) return line;
    if (has_ended() || !read(deadline)) return std::nullopt;
  }
}

std::optional<std::string> ChildOutput::rest(MonotonicTime deadline) {
  while (!has_ended()) {
    if (!read(deadline)) return std::nullopt;
  }
  return take_rest();
}

// --- Its files ------------------------------------------------------------------------------------------------------

Descriptor open_log(const std::filesystem::path &path) {
  return Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

Descriptor open_null() {
  return Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
}

} // namespace onced
