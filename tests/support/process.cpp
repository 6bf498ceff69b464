#include "support/process.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace onced::testing {
namespace {

int checked(int result, const char *call) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), call);
  return result;
}

void write_whole(const Descriptor &file, std::string_view text) {
  checked(write_all(file, text) ? 0 : -1, "write");
}

// A nameless file with this content, to be read from its beginning.
Descriptor file_with(std::string_view content) {
  Descriptor file(checked(::memfd_create("onced-test", MFD_CLOEXEC), "memfd_create"));
  write_whole(file, content);
  checked(static_cast<int>(::lseek(file.number(), 0, SEEK_SET)), "lseek");
  return file;
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

Process::Process(const Options &options)
    : command_line_("onced"), errors_(checked(::memfd_create("onced-test-errors", MFD_CLOEXEC), "memfd_create")) {
  std::signal(SIGPIPE, SIG_IGN); // a process that goes away is what these tests are about
  for (const std::string &argument : options.arguments)
    command_line_ += " " + argument;
  std::vector<std::string> words = options.wrapper;
  words.emplace_back(ONCED_COMMAND);
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());

  Pipe input = options.input ? Pipe{.reading = file_with(*options.input), .writing = {}} : make_pipe().value();
  Pipe output;
  if (options.output == Output::captured) output = make_pipe().value();
  if (options.output == Output::full_device) output.writing = Descriptor(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  auto started = ChildProcess::start({.words = words,
                                      .environment = {},
                                      .input = input.reading.number(),
                                      .output = output.writing.number(),
                                      .errors = errors_.number()});
  if (!started) throw std::system_error(started.error(), std::generic_category(), words.front());
  process_ = std::move(*started);
  input_ = std::move(input.writing);
  output_ = ChildOutput(std::move(output.reading));
}

void Process::write_input(std::string_view text) {
  write_whole(input_, text);
}

void Process::end_input() {
  input_ = Descriptor();
}

std::optional<std::string> Process::next_line() {
  auto line = output_.next_line(patience_from_now());
  if (!line && !output_.has_ended()) give_up("a line of its output");
  return line;
}

std::string Process::rest_of_output() {
  auto rest = output_.rest(patience_from_now());
  if (!rest) give_up("the end of its output");
  return std::move(*rest);
}

std::string Process::errors() const {
  struct stat status {};
  checked(::fstat(errors_.number(), &status), "fstat");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t count = ::pread(errors_.number(), text.data(), text.size(), 0);
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
  process_.signal(number);
}

bool Process::is_running() {
  if (!process_.has_ended()) return true;
  static_cast<void>(process_.wait());
  return false;
}

ExitStatus Process::wait() {
  if (!process_.ends_before(patience_from_now())) give_up("the end");
  const ProcessEnd end = process_.wait();
  return {.code = end.exit_code().value_or(-1), .signal = end.signal().value_or(0), .story = story()};
}

void Process::kill_now() {
  signal(SIGKILL);
  static_cast<void>(wait());
}

} // namespace onced::testing
