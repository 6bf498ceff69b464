#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include <zmq.hpp>

#include "base/child_process.hpp"
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

// In a copy of this process: connects where it is told to and sends an empty message, then all of them when it is told
// to start. The exit code.
int send_when_told(const Workload &workload, int orders) {
  try {
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::push);
    socket.set(zmq::sockopt::sndtimeo, patience_ms);
    socket.connect(read_line(orders));
    bool ok = socket.send(zmq::message_t(), zmq::send_flags::none).has_value();
    ok = ok && read_line(orders) == start_order && send_messages(workload, socket);
    socket.close();
    context.close(); // waits until all has been sent
    return ok ? 0 : 1;
  } catch (const std::exception &) {
    return 1;
  }
}

// The process that sends. It dies with the thread that made it. Made before this run has a context of ZeroMQ, which
// does not survive a fork.
class SendingProcess {
public:
  explicit SendingProcess(const Workload &workload) {
    auto orders = make_pipe();
    if (!orders) throw std::runtime_error("no pipe for orders");
    auto process = ChildProcess::start_copy([&] {
      orders->writing = Descriptor();
      return send_when_told(workload, orders->reading.number());
    });
    if (!process) throw std::runtime_error("no process to send from");
    process_ = std::move(*process);
    orders_ = std::move(orders->writing);
  }

  void order(std::string line) const {
    line += '\n';
    if (!write_all(orders_, line)) throw std::runtime_error("the sending process takes no orders");
  }

private:
  Descriptor orders_;
  ChildProcess process_;
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
