// Bytes that a peer leaves unread. That ZeroMQ frees what the peer has read is tested with its sockets.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "onced/limits.hpp"
#include "worker/unread.hpp"

using namespace onced;
using worker::Unread;

TEST_CASE("bytes of a peer count until their message is gone") {
  Unread unread;
  CHECK(unread.has_room("a", 10 * limits::unread_bytes_max)); // it has nothing else to read
  {
    const auto message = unread.message_for("a", Bytes(limits::unread_bytes_max - 100, 'x'));
    CHECK(message.size() == limits::unread_bytes_max - 100);
    CHECK(message.to_string_view().back() == 'x');
    CHECK(unread.has_room("a", 100));
    CHECK_FALSE(unread.has_room("a", 101));
    CHECK(unread.has_room("b", 101));
    const auto more = unread.message_for("a", Bytes(100, 'y'));
    CHECK_FALSE(unread.has_room("a", 1));
  }
  CHECK(unread.has_room("a", limits::unread_bytes_max));
}

TEST_CASE("messages outlive what counts them") {
  zmq::message_t message;
  {
    Unread unread;
    message = unread.message_for("a", "text");
  }
  CHECK(message.to_string_view() == "text");
}

TEST_CASE("peers by the hundred thousand that have read everything are forgotten but not who has not") {
  Unread unread;
  const auto kept = unread.message_for("slow", Bytes(limits::unread_bytes_max, 'x'));
  for (int peer = 0; peer < 100'000; ++peer)
    static_cast<void>(unread.message_for(std::to_string(peer), "text"));
  CHECK_FALSE(unread.has_room("slow", 1));
}

TEST_CASE("what a peer has read from its socket does not count any more") {
  zmq::context_t context;
  zmq::socket_t router(context, zmq::socket_type::router);
  zmq::socket_t peer(context, zmq::socket_type::dealer);
  router.set(zmq::sockopt::linger, 0);
  peer.set(zmq::sockopt::linger, 0);
  peer.set(zmq::sockopt::rcvhwm, 1);
  router.bind("tcp://127.0.0.1:*");
  peer.connect(router.get(zmq::sockopt::last_endpoint));
  peer.send(zmq::str_buffer("hello"));
  zmq::message_t routing_id;
  zmq::message_t frame;
  REQUIRE(router.recv(routing_id));
  REQUIRE(router.recv(frame));

  Unread unread;
  constexpr std::size_t bytes = 1024 * 1024;
  std::size_t sent = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  // The kernel's buffers take a few.
  for (; unread.has_room(routing_id.to_string(), bytes) && sent < 64; ++sent) {
    REQUIRE(router.send(zmq::message_t(routing_id.to_string_view()), zmq::send_flags::sndmore));
    REQUIRE(router.send(unread.message_for(routing_id.to_string(), Bytes(bytes, 'x')), zmq::send_flags::dontwait));
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!unread.has_room(routing_id.to_string(), bytes) && std::chrono::steady_clock::now() < give_up)
      std::this_thread::yield();
  }
  CHECK(sent < 64);
  for (; sent > 0; --sent)
    REQUIRE(peer.recv(frame));
  while (!unread.has_room(routing_id.to_string(), bytes) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  CHECK(unread.has_room(routing_id.to_string(), bytes));
}
