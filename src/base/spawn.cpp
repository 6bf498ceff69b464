#include "base/spawn.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onced {
namespace {

constexpr int lowest_raised = 100;

// What the child needs between vfork and exec, made before: there it may not take memory.
struct Prepared {
  const char *path;
  char *const *arguments;
  char *const *environment;
  int input;
  int output;
  int errors;
  int lock;
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

// The lock is the only one of the raised descriptors that the program keeps; all else closes when it becomes that.
bool set_descriptors(const Prepared &prepared) {
  return ::dup2(prepared.input, STDIN_FILENO) >= 0 && ::dup2(prepared.output, STDOUT_FILENO) >= 0 &&
         ::dup2(prepared.errors, STDERR_FILENO) >= 0 && close_rest_at_exec(prepared) &&
         ::fcntl(prepared.lock, F_SETFD, 0) == 0 && ::setrlimit(RLIMIT_NOFILE, &prepared.descriptors) == 0;
}

bool die_with_parent(const Prepared &prepared) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  return ::getppid() == prepared.parent; // it may have died before that
}

// In the child: only what may be called there, on memory that is still the parent's.
[[noreturn]] void become(const Prepared &prepared) {
  if (die_with_parent(prepared) && ::setpgid(0, 0) == 0 && set_descriptors(prepared) && reset_signals()) {
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

} // namespace

Descriptor raised(const Descriptor &file) {
  if (!file.is_open()) return {};
  return Descriptor(::fcntl(file.number(), F_DUPFD_CLOEXEC, lowest_raised));
}

tl::expected<pid_t, int> spawn(const Program &program) {
  std::vector<std::string> words = program.arguments;
  std::vector<std::string> variables;
  for (const auto &[name, value] : program.environment)
    variables.push_back(std::string(name).append("=").append(value));
  const auto arguments = pointers_to(words);
  const auto environment = pointers_to(variables);

  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return tl::unexpected(errno);
  const Descriptor told(pipe[0]);
  Descriptor telling(pipe[1]);
  telling = raised(telling);
  if (!telling.is_open()) return tl::unexpected(errno);

  const pid_t process = fork_into({program.path.c_str(), arguments.data(), environment.data(), program.input.number(),
                                   program.output.number(), program.errors.number(), program.lock.number(),
                                   telling.number(), ::getpid(), descriptor_limit(program)});
  if (process < 0) return tl::unexpected(errno);
  telling = Descriptor();
  const int failure = failure_told(told);
  if (failure == 0) return process;
  reap(process);
  return tl::unexpected(failure);
}

} // namespace onced
