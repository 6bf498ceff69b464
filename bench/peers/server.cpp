#include "server.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace onced::bench::peers {
namespace {

using std::chrono::nanoseconds;

std::string read_file(const std::filesystem::path &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int spawn(std::vector<std::string> command, const std::filesystem::path &log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  std::vector<char *> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string &word : command)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // The signals that this program holds back are not held back there.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none{};
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0); // a Ctrl-C of the terminal is for this program alone
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  int process = -1;
  const int error = ::posix_spawnp(&process, command.front().c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Missing(command.front() + " cannot be started");
  return process;
}

nanoseconds cpu_of(int process) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + nanoseconds(used.tv_nsec);
}

// Of the children that it has waited for.
nanoseconds cpu_of_ended_children(int process) {
  const std::string stat = read_file("/proc/" + std::to_string(process) + "/stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(stat.substr(name_end + 1));
  std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
  // Words from the state on: cutime and cstime are the fields 16 and 17 of proc(5), the state is the third.
  if (words.size() < 15) return {};
  const std::int64_t ticks = std::stoll(words[13]) + std::stoll(words[14]);
  return nanoseconds(ticks * 1'000'000'000 / ::sysconf(_SC_CLK_TCK));
}

} // namespace

ServerProcess::ServerProcess(std::vector<std::string> command, int stop_signal, const std::filesystem::path &log,
                             const std::function<bool()> &ready)
    : process_(spawn(std::move(command), log)), stop_signal_(stop_signal) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!ready()) {
    const bool ended = ::waitpid(process_, nullptr, WNOHANG) == process_;
    if (ended) process_ = -1;
    if (ended || std::chrono::steady_clock::now() > deadline) {
      stop();
      throw std::runtime_error("a server was not ready; its log:\n" + read_file(log));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

ServerProcess::~ServerProcess() {
  stop();
}

void ServerProcess::stop() {
  if (process_ < 0) return;
  ::kill(process_, stop_signal_);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (::waitpid(process_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(process_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  process_ = -1;
}

nanoseconds ServerProcess::cpu() const {
  nanoseconds sum = cpu_of(process_) + cpu_of_ended_children(process_);
  const std::string id = std::to_string(process_);
  std::istringstream children(read_file("/proc/" + id + "/task/" + id + "/children"));
  for (int child = 0; children >> child;)
    sum += cpu_of(child);
  return sum;
}

void run_program(std::vector<std::string> command, const std::filesystem::path &log) {
  const std::string name = command.front();
  const int process = spawn(std::move(command), log);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(name + " failed; its log:\n" + read_file(log));
  }
}

std::string require_program(const std::filesystem::path &program) {
  if (::access(program.c_str(), X_OK) != 0) throw Missing(program.string() + " is not installed");
  return program.string();
}

void make_folder(const std::filesystem::path &folder) {
  std::filesystem::create_directories(folder);
}

void write_file(const std::filesystem::path &file, const std::string &text) {
  std::ofstream stream(file);
  stream << text;
  if (!stream.flush()) throw std::runtime_error(file.string() + " cannot be written");
}

} // namespace onced::bench::peers
