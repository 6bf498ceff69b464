#include "base/spawn.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.hpp"

namespace onced {
namespace {

constexpr std::string_view usual_folders = "/usr/local/bin:/usr/bin:/bin";

// What the child needs between vfork and exec, made before: there it may not take memory.
struct Prepared {
  const char *path;
  char *const *arguments;
  char *const *environment;
  int input;
  int output;
  int errors;
  int kept;
  int failure; // where it tells why it is not the program
  pid_t parent;
  rlimit descriptors;
};

// Valid as long as the strings are.
std::vector<char *> pointers_to(std::vector<std::string> &strings) {
  std::vector<char *> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string &text : strings)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A handler of this process would be reset by exec, but an ignored signal would stay ignored; and until then the
// handler would run in memory that is still the parent's.
bool reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal)
    ::sigaction(signal, &standard, nullptr); // it refuses a few, which cannot be ignored
  sigset_t none;
  sigemptyset(&none);
  return ::pthread_sigmask(SIG_SETMASK, &none, nullptr) == 0;
}

// Marks the descriptors that are listed there, without taking memory. False: they could not be listed.
bool close_listed_at_exec() {
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(dirent64) std::array<char, 4096> entries{};
  long bytes = 0;
  while ((bytes = ::syscall(SYS_getdents64, folder, entries.data(), entries.size())) > 0) {
    for (long at = 0; at < bytes;) {
      const auto *entry = reinterpret_cast<const dirent64 *>(entries.data() + at);
      int number = 0;
      for (const char *digit = entry->d_name; *digit >= '0' && *digit <= '9'; ++digit)
        number = number * 10 + (*digit - '0');
      if (number > STDERR_FILENO) ::fcntl(number, F_SETFD, FD_CLOEXEC);
      at += entry->d_reclen;
    }
  }
  ::close(folder);
  return bytes == 0;
}

// All but the standard streams close when the program begins. Kernels before 5.11 and some sandboxes have no
// close_range.
bool close_rest_at_exec(const Prepared &prepared) {
  if (::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0 || close_listed_at_exec()) return true;
  for (rlim_t number = STDERR_FILENO + 1; number < prepared.descriptors.rlim_max; ++number)
    ::fcntl(static_cast<int>(number), F_SETFD, FD_CLOEXEC); // those that are not open are an error
  return true;
}

bool set_stream(int file, int stream) {
  if (file >= 0) return ::dup2(file, stream) >= 0;
  ::close(stream);
  return true;
}

// One of the raised descriptors may be kept; all else closes when the child becomes the program.
bool set_descriptors(const Prepared &prepared) {
  return set_stream(prepared.input, STDIN_FILENO) && set_stream(prepared.output, STDOUT_FILENO) &&
         set_stream(prepared.errors, STDERR_FILENO) && close_rest_at_exec(prepared) &&
         (prepared.kept < 0 || ::fcntl(prepared.kept, F_SETFD, 0) == 0) &&
         ::setrlimit(RLIMIT_NOFILE, &prepared.descriptors) == 0;
}

bool die_with(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  return ::getppid() == parent; // it may have died before that
}

// In the child: only what may be called there, on memory that is still the parent's.
[[noreturn]] void become(const Prepared &prepared) {
  if (die_with(prepared.parent) && ::setpgid(0, 0) == 0 && set_descriptors(prepared) && reset_signals()) {
    ::execve(prepared.path, prepared.arguments, prepared.environment);
  }
  const int failure = errno;
  static_cast<void>(::write(prepared.failure, &failure, sizeof failure));
  ::_exit(127);
}

// vfork, as fork would copy the page tables of a process that may hold gigabytes. All signals are blocked, so that no
// handler runs in the child before it has reset them.
pid_t fork_into(const Prepared &prepared) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t process = ::vfork();
  if (process == 0) become(prepared);
  const int failure = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = failure;
  return process;
}

// Of the program: the soft limit is what this process was given, as it may have raised its own.
rlimit descriptor_limit(const Program &program) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (program.descriptors_max) limit.rlim_cur = std::min<rlim_t>(*program.descriptors_max, limit.rlim_max);
  return limit;
}

// 0 where the child has become the program: then the pipe has closed with nothing in it.
int failure_told(const Descriptor &pipe) {
  int failure = 0;
  while (::read(pipe.number(), &failure, sizeof failure) < 0 && errno == EINTR) {
  }
  return failure;
}

void reap(pid_t process) {
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// A folder may be entered, so access() says that it may be "run".
bool is_program(const std::string &path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// Where execve looks: it does not search. Of several programs the first that may be run; where there is none, a path
// that gives the right error.
std::string path_of(const std::string &program, const EnvironmentVariables &environment) {
  if (program.find('/') != std::string::npos) return program;
  const auto listed = environment.find("PATH");
  std::string_view folders = listed == environment.end() ? usual_folders : std::string_view(listed->second);
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
    std::string path = std::string(folder) + "/" + program;
    if (!folder.empty() && is_program(path)) return path;
  }
  return {};
}

// The files of a program under numbers that no standard stream has.
struct RaisedFiles {
  explicit RaisedFiles(const Program &program) : asked{program.input, program.output, program.errors, program.kept} {
    std::transform(asked.begin(), asked.end(), files.begin(), raised);
  }
  // One is open and could not be raised.
  [[nodiscard]] bool are_incomplete() const {
    return !std::equal(asked.begin(), asked.end(), files.begin(), [](int number, const Descriptor &file) {
      return file.is_open() || ::fcntl(number, F_GETFD) < 0;
    });
  }

  std::array<int, 4> asked;
  std::array<Descriptor, 4> files;
};

// In the copy: what is thrown must not reach the caller of the original.
[[noreturn]] void live_for(const std::function<int()> &work) noexcept {
  ::_exit(work());
}

} // namespace

EnvironmentVariables own_environment() {
  EnvironmentVariables environment;
  for (char **variable = ::environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t end = text.find('=');
    if (end != std::string_view::npos) environment.emplace(text.substr(0, end), text.substr(end + 1));
  }
  return environment;
}

tl::expected<pid_t, int> spawn(const Program &program) {
  const EnvironmentVariables given = program.environment ? *program.environment : own_environment();
  const std::string path = path_of(program.words.at(0), given);
  std::vector<std::string> words = program.words;
  std::vector<std::string> variables;
  for (const auto &[name, value] : given)
    variables.push_back(std::string(name).append("=").append(value));
  const auto arguments = pointers_to(words);
  const auto environment = pointers_to(variables);

  const RaisedFiles raised_files(program); // before anything else could take the number of a closed stream
  if (raised_files.are_incomplete()) return tl::unexpected(EMFILE);
  const auto &files = raised_files.files;
  auto pipe = make_pipe();
  if (!pipe) return tl::unexpected(pipe.error());

  const pid_t process =
      fork_into({path.c_str(), arguments.data(), environment.data(), files[0].number(), files[1].number(),
                 files[2].number(), files[3].number(), pipe->writing.number(), ::getpid(), descriptor_limit(program)});
  if (process < 0) return tl::unexpected(errno);
  pipe->writing = Descriptor();
  const int failure = failure_told(pipe->reading);
  if (failure == 0) return process;
  reap(process);
  return tl::unexpected(failure);
}

tl::expected<pid_t, int> spawn_copy(const std::function<int()> &work) {
  std::cout.flush(); // or the copy, if it prints more, says all of it again
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) return tl::unexpected(errno);
  if (process > 0) return process;
  if (!die_with(parent)) ::_exit(127);
  live_for(work);
}

} // namespace onced
