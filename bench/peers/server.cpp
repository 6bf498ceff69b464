#include "server.hpp"

#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <unistd.h>

namespace onced::bench::peers {
namespace {

using std::chrono::nanoseconds;

std::string read_file(const std::filesystem::path &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

ChildProcess spawn(const std::vector<std::string> &command, const std::filesystem::path &log) {
  const Descriptor nothing = open_null();
  const Descriptor log_file = open_log(log);
  auto process = ChildProcess::start({.words = command,
                                      .environment = {},
                                      .input = nothing.number(),
                                      .output = log_file.number(),
                                      .errors = log_file.number()});
  if (!process) throw Missing(command.front() + " cannot be started");
  return std::move(*process);
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

ServerProcess::ServerProcess(const std::vector<std::string> &command, int stop_signal, const std::filesystem::path &log,
                             const std::function<bool()> &ready)
    : process_(spawn(command, log)), stop_signal_(stop_signal) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!ready()) {
    if (process_.has_ended() || std::chrono::steady_clock::now() > deadline) {
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
  process_.signal(stop_signal_);
  if (!process_.ends_before(std::chrono::steady_clock::now() + std::chrono::seconds(20))) process_.kill();
  process_.wait();
}

nanoseconds ServerProcess::cpu() const {
  nanoseconds sum = cpu_of(process_.id()) + cpu_of_ended_children(process_.id());
  const std::string id = std::to_string(process_.id());
  std::istringstream children(read_file("/proc/" + id + "/task/" + id + "/children"));
  for (int child = 0; children >> child;)
    sum += cpu_of(child);
  return sum;
}

void run_program(const std::vector<std::string> &command, const std::filesystem::path &log) {
  if (!spawn(command, log).wait().is_success()) {
    throw std::runtime_error(command.front() + " failed; its log:\n" + read_file(log));
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
