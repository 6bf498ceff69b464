#include "support/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onced::testing {
namespace {

int checked(int result, const char *call) {
  if (result < 0) throw std::runtime_error(std::string(call) + " failed: " + std::to_string(errno));
  return result;
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    text.remove_prefix(static_cast<std::size_t>(checked(static_cast<int>(count), "write")));
  }
}

// A nameless file with this content, to be read from its beginning.
int file_with(std::string_view content) {
  const int file = checked(::memfd_create("onced-test", MFD_CLOEXEC), "memfd_create");
  write_all(file, content);
  checked(static_cast<int>(::lseek(file, 0, SEEK_SET)), "lseek");
  return file;
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "pipe2");
  return ends;
}

void close_if_open(int &descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// How long one poll may wait.
int left_of(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

} // namespace

std::ostream &operator<<(std::ostream &out, const ExitStatus &status) {
  if (status.signal != 0) {
    out << "killed by signal " << status.signal;
  } else {
    out << "exit code " << status.code;
  }
  return out << "; " << status.story;
}

Process::Process(const Options &options) : command_line_("onced") {
  std::signal(SIGPIPE, SIG_IGN); // a process that goes away is what these tests are about
  for (const std::string &argument : options.arguments)
    command_line_ += " " + argument;
  errors_ = checked(::memfd_create("onced-test-errors", MFD_CLOEXEC), "memfd_create");

  std::array<int, 2> input{-1, -1};
  if (options.input) {
    input[0] = file_with(*options.input);
  } else {
    input = make_pipe();
  }
  std::array<int, 2> output{-1, -1};
  if (options.output == Output::captured) output = make_pipe();
  if (options.output == Output::full_device) output[1] = checked(::open("/dev/full", O_WRONLY | O_CLOEXEC), "open");

  const pid_t parent = ::getpid();
  process_ = checked(::fork(), "fork");
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // it must not outlive a test that was killed
    if (::getppid() != parent) ::_exit(127);
    run(options, input[0], output[1]);
  }
  close_if_open(input[0]);
  close_if_open(output[1]);
  input_ = input[1];
  output_ = output[0];
}

// In the child: never returns. Memory is taken here, between fork and exec, which glibc makes safe.
void Process::run(const Options &options, int input, int output) const {
  std::signal(SIGPIPE, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  ::dup2(errors_, STDERR_FILENO);
  if (output >= 0) {
    ::dup2(output, STDOUT_FILENO);
  } else {
    ::close(STDOUT_FILENO);
  }
  std::vector<std::string> words = options.wrapper;
  words.emplace_back(ONCED_COMMAND);
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(pointers.front(), pointers.data());
  ::_exit(127);
}

Process::~Process() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close_if_open(input_);
  close_if_open(output_);
  close_if_open(errors_);
}

void Process::write_input(std::string_view text) {
  write_all(input_, text);
}

void Process::end_input() {
  close_if_open(input_);
}

// False at the end of the output.
bool Process::read_more() {
  const Deadline deadline = patience_from_now();
  std::array<char, 64UL * 1024> buffer{};
  pollfd ready{output_, POLLIN, 0};
  while (::poll(&ready, 1, left_of(deadline)) <= 0) {
    if (std::chrono::steady_clock::now() >= deadline) give_up("a line of its output");
  }
  const ssize_t count = ::read(output_, buffer.data(), buffer.size());
  if (count > 0) unread_.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

std::optional<std::string> Process::next_line() {
  std::size_t scanned = 0;
  for (;;) {
    const std::size_t end = unread_.find('\n', scanned);
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    scanned = unread_.size();
    if (!read_more()) return std::nullopt;
  }
}

std::string Process::rest_of_output() {
  if (output_ >= 0) {
    while (read_more()) {
    }
  }
  return std::exchange(unread_, {});
}

std::string Process::errors() const {
  struct stat status {};
  checked(::fstat(errors_, &status), "fstat");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t count = ::pread(errors_, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

std::string Process::story() const {
  return command_line_ + "\nstderr: " + errors();
}

void Process::give_up(const std::string &waited_for) const {
  throw std::runtime_error("waited in vain for " + waited_for + " of: " + story());
}

void Process::signal(int number) const {
  if (process_ > 0) ::kill(process_, number);
}

bool Process::is_running() {
  if (process_ <= 0) return false;
  int status = 0;
  const pid_t ended = ::waitpid(process_, &status, WNOHANG);
  if (ended != process_) return true;
  process_ = -1;
  status_ = status;
  return false;
}

ExitStatus Process::wait() {
  if (!eventually([this] { return !is_running(); })) give_up("the end");
  const int status = status_.value_or(0);
  ExitStatus exit{.code = -1, .signal = 0, .story = story()};
  if (WIFEXITED(status)) exit.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
  return exit;
}

void Process::kill_now() {
  signal(SIGKILL);
  static_cast<void>(wait());
}

} // namespace onced::testing
