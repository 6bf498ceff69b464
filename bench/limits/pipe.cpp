#include <array>
#include <csignal>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zmq.hpp>

#include "limit.hpp"
#include "process_usage.hpp"

namespace onced::bench::limits {
namespace {

// How long a message may be on its way.
constexpr int patience_ms = 10'000;
constexpr std::string_view start_order = "start";

// What the parent says, up to the end of a line.
std::string read_line(int from) {
  std::string line;
  for (char next = 0; ::read(from, &next, 1) == 1 && next != '\n';)
    line += next;
  return line;
}

bool send_messages(const Workload &workload, zmq::socket_t &socket) {
  for (const auto &message : workload.messages) {
    // Borrowed, as the bytes outlive the socket: copying them is not what is measured.
    zmq::message_t frame(const_cast<char *>(message.bytes.data()), message.bytes.size(), nullptr);
    if (!socket.send(frame, zmq::send_flags::none)) return false;
  }
  return true;
}

// In the child: connects where it is told to and sends an empty message, then all of them when it is told to start.
[[noreturn]] void send_when_told(const Workload &workload, int orders) {
  try {
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::push);
    socket.set(zmq::sockopt::sndtimeo, patience_ms);
    socket.connect(read_line(orders));
    bool ok = socket.send(zmq::message_t(), zmq::send_flags::none).has_value();
    ok = ok && read_line(orders) == start_order && send_messages(workload, socket);
    socket.close();
    context.close(); // waits until all has been sent
    ::_exit(ok ? 0 : 1);
  } catch (...) {
    ::_exit(1);
  }
}

// The process that sends. It dies with the thread that made it. Made before this run has a context of ZeroMQ, which
// does not survive a fork.
class SendingProcess {
public:
  explicit SendingProcess(const Workload &workload) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe for orders");
    const int parent = ::getpid();
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[1]);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      send_when_told(workload, ends[0]);
    }
    ::close(ends[0]);
    orders_ = ends[1];
    if (process_ > 0) return;
    ::close(orders_);
    throw std::runtime_error("no process to send from");
  }
  ~SendingProcess() {
    ::close(orders_);
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  SendingProcess(const SendingProcess &) = delete;
  SendingProcess &operator=(const SendingProcess &) = delete;

  void order(std::string line) const {
    line += '\n';
    if (::write(orders_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::runtime_error("the sending process takes no orders");
    }
  }

private:
  int orders_ = -1;
  int process_ = -1;
};

std::size_t receive(zmq::socket_t &socket, zmq::message_t &frame) {
  if (!socket.recv(frame, zmq::recv_flags::none)) throw std::runtime_error("messages are missing");
  return frame.size();
}

std::size_t bytes_of(const Workload &workload) {
  std::size_t bytes = 0;
  for (const auto &message : workload.messages)
    bytes += message.bytes.size();
  return bytes;
}

} // namespace

Measured measure_pipe(const Setting &setting) {
  const Workload &workload = setting.traffic.measured;
  const SendingProcess sender(workload);
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::pull);
  socket.set(zmq::sockopt::rcvtimeo, patience_ms);
  socket.bind(endpoint_to_bind(setting.transport, setting.directory, "pipe"));
  sender.order(socket.get(zmq::sockopt::last_endpoint));
  zmq::message_t frame;
  std::size_t received = receive(socket, frame); // the empty one: it is connected
  Measured measured;
  const auto cpu_before = usage_of(::getpid()).cpu;
  const auto begin = std::chrono::steady_clock::now();
  sender.order(std::string(start_order));
  for (std::size_t at = 0; at < workload.messages.size(); ++at)
    received += receive(socket, frame);
  measured.elapsed = std::chrono::steady_clock::now() - begin;
  measured.cpu = usage_of(::getpid()).cpu - cpu_before;
  if (received != bytes_of(workload))
    throw std::runtime_error("the messages that arrived are not those that were sent");
  return measured;
}

} // namespace onced::bench::limits
