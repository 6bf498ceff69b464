#include "init_process.hpp"

#include <cerrno>
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace onced::tools {
namespace {

// All children that have ended. Ends with the one that is waited for.
void reap_all(pid_t child) noexcept {
  int status = 0;
  for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended != child) continue;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
}

[[noreturn]] void be_first_process(pid_t child, const sigset_t &all) noexcept {
  for (;;) {
    siginfo_t info{};
    const int number = ::sigwaitinfo(&all, &info);
    if (number == SIGCHLD) {
      reap_all(child);
    } else if (number > 0 && info.si_code <= 0) { // what a terminal sends goes to the child anyway
      ::kill(child, number);
    }
  }
}

} // namespace

void leave_first_process() noexcept {
  if (::getpid() != 1) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = ::fork();
  if (child > 0) be_first_process(child, all);
  if (child == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr); // where there can be no child the command runs here
}

} // namespace onced::tools
