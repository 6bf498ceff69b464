#include "support/worker_process.hpp"

#include <cstddef>
#include <random>
#include <stdexcept>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
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

// Claims a port among all tests that run now: an abstract socket of that name, which ends with its process (unix(7)).
// -1: another test has it.
int claim(std::uint16_t port) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "onced-test-port-" + std::to_string(port);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const int claimed = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(claimed, reinterpret_cast<const sockaddr *>(&address), size) == 0) return claimed;
  ::close(claimed);
  return -1;
}

} // namespace

// Below the ports that the kernel gives out, so that nobody is given ours while a worker is down, and a sender that
// connects to nobody is never connected with itself.
OwnPort::OwnPort() {
  std::random_device random;
  std::uniform_int_distribution<std::uint16_t> ports(10'000, 32'000);
  for (int attempt = 0; attempt < 100; ++attempt) {
    number_ = ports(random);
    claim_ = claim(number_);
    if (claim_ >= 0 && is_free(number_)) return;
    if (claim_ >= 0) ::close(claim_);
  }
  throw std::runtime_error("no free port");
}

OwnPort::~OwnPort() {
  ::close(claim_);
}

WorkerProcess::WorkerProcess() : WorkerProcess(std::filesystem::path{}) {}

WorkerProcess::WorkerProcess(std::filesystem::path data)
    : data_(data.empty() ? directory_.path() / "data" : std::move(data)) {}

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
