#include "support/worker_process.hpp"

#include <random>
#include <stdexcept>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

namespace onced::testing {
namespace {

bool is_free(std::uint16_t port) {
  const int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = ::bind(tcp, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
  ::close(tcp);
  return bound;
}

// Below the ports that the kernel gives out, so that nobody is given ours while a worker is down, and a sender that
// connects to nobody is never connected with itself.
std::string own_endpoint() {
  std::random_device random; // tests in other processes choose too
  std::uniform_int_distribution<std::uint16_t> ports(10'000, 32'000);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::uint16_t port = ports(random);
    if (is_free(port)) return "tcp://127.0.0.1:" + std::to_string(port);
  }
  throw std::runtime_error("no free port");
}

} // namespace

WorkerProcess::WorkerProcess() : WorkerProcess(std::filesystem::path{}) {}

WorkerProcess::WorkerProcess(std::filesystem::path data)
    : data_(data.empty() ? directory_.path() / "data" : std::move(data)), jobs_(own_endpoint()),
      replies_(own_endpoint()) {}

void WorkerProcess::start(const Arguments &more, const std::vector<std::string> &wrapper) {
  process_ = std::make_unique<Process>(Process::Options{.arguments = serve(more), .wrapper = wrapper});
  const auto line = process_->next_line();
  if (!line) throw std::runtime_error("the worker did not start: " + process_->wait().story);
  ready_ = std::make_unique<Line>(*line);
}

ExitStatus WorkerProcess::stop() {
  process_->signal(SIGTERM);
  return process_->wait();
}

Arguments WorkerProcess::send(const Arguments &more) const {
  return Arguments{"send", "--jobs", jobs_, "--replies", replies_} + more;
}

Arguments WorkerProcess::serve(const Arguments &more) const {
  return Arguments{"serve", "--data", data_.string(), "--jobs", jobs_, "--replies", replies_} + more;
}

} // namespace onced::testing
