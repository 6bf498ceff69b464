// The sockets and the asking side of queries, against sockets in this process. What ZeroMQ itself promises is not
// tested.
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <zmq.hpp>

#include "base/wake.hpp"
#include "onced/limits.hpp"
#include "support/store_harness.hpp"
#include "unit/wire/samples.hpp"
#include "wire/control_endpoint.hpp"
#include "wire/query.hpp"
#include "wire/raw_message.hpp"
#include "wire/sockets.hpp"

namespace onced::testing {
namespace {

using std::chrono::milliseconds;

MonotonicTime in(milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

// Long enough for any machine; only a failing test waits so long.
constexpr milliseconds patience{20'000};

Result<zmq::socket_t> bind_somewhere(zmq::context_t &context) {
  return wire::bind_replies(context, "tcp://127.0.0.1:*");
}

// Where nobody listens. Not a port that was free a moment ago: another process may take it.
std::string nobody_in(const ScratchDirectory &directory) {
  return "ipc://" + (directory.path() / "nobody.sock").string();
}

// Answers the first question with `answer` as a whole frame, and returns the question.
Bytes answer_once(zmq::socket_t &router, BytesView answer) {
  router.set(zmq::sockopt::rcvtimeo, static_cast<int>(patience.count()));
  zmq::message_t routing_id;
  zmq::message_t question;
  REQUIRE(router.recv(routing_id, zmq::recv_flags::none));
  REQUIRE(router.recv(question, zmq::recv_flags::none));
  router.send(routing_id, zmq::send_flags::sndmore);
  router.send(zmq::const_buffer(answer.data(), answer.size()), zmq::send_flags::none);
  return question.to_string();
}

TEST_CASE("a star in an endpoint becomes a port that can be connected to") {
  zmq::context_t context;
  auto pull = wire::bind_jobs(context, "tcp://127.0.0.1:*");
  REQUIRE(pull);
  const std::string endpoint = wire::bound_endpoint(*pull);
  CHECK(endpoint.starts_with("tcp://127.0.0.1:"));
  CHECK(endpoint.find('*') == std::string::npos);

  REQUIRE(wire::send_raw_message(endpoint, "not-json", in(patience)));
  pull->set(zmq::sockopt::rcvtimeo, static_cast<int>(patience.count()));
  zmq::message_t message;
  REQUIRE(pull->recv(message, zmq::recv_flags::none));
  CHECK(message.to_string() == "not-json");
}

TEST_CASE("binding a port that is taken is an endpoint error that names it") {
  zmq::context_t context;
  auto first = bind_somewhere(context);
  REQUIRE(first);
  const std::string endpoint = wire::bound_endpoint(*first);
  for (const auto &second : {wire::bind_replies(context, endpoint), wire::bind_jobs(context, endpoint)}) {
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ErrorCode::endpoint);
    CHECK(second.error().concerns == endpoint);
    CHECK(second.error().remedy.find("another port") != std::string::npos);
  }
}

TEST_CASE("an endpoint that is none is an endpoint error for every socket") {
  zmq::context_t context;
  for (const std::string endpoint : {"", "127.0.0.1:5570", "tcp://", "tcp://127.0.0.1:port", "carrier-pigeon://roof"}) {
    CAPTURE(endpoint);
    CHECK(wire::bind_jobs(context, endpoint).error().code == ErrorCode::endpoint);
    CHECK(wire::bind_replies(context, endpoint).error().code == ErrorCode::endpoint);
    CHECK(wire::connect_jobs(context, endpoint).error().code == ErrorCode::endpoint);
    CHECK(wire::connect_replies(context, endpoint).error().code == ErrorCode::endpoint);
    CHECK(wire::connect_monitored_replies(context, endpoint).error().code == ErrorCode::endpoint);
    CHECK(wire::ask(endpoint, "", in(patience)).error().code == ErrorCode::endpoint);
    CHECK(wire::send_raw_message(endpoint, "", in(patience)).error().code == ErrorCode::endpoint);
  }
}

TEST_CASE("a raw message that nobody takes times out at its deadline") {
  const ScratchDirectory directory;
  const std::string endpoint = nobody_in(directory);
  const auto sent = wire::send_raw_message(endpoint, "job", in(milliseconds(50)));
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::timed_out);
  CHECK(sent.error().concerns == endpoint);
}

TEST_CASE("asking gives back the answer and puts the request to the worker") {
  zmq::context_t context;
  auto router = bind_somewhere(context);
  REQUIRE(router);
  const std::string endpoint = wire::bound_endpoint(*router);
  Result<Bytes> answer;
  std::thread asker([&] { answer = wire::ask(endpoint, sample_request(), in(patience)); });
  const Bytes question = answer_once(*router, wire::encode_answer(sample_answer()));
  asker.join();
  wire::PeerMessage heard;
  REQUIRE(wire::decode_peer_message(question, heard) == wire::PeerFraming::known);
  REQUIRE(heard.request);
  CHECK(*heard.request == sample_request());
  REQUIRE(answer);
  CHECK(*answer == sample_answer());
}

TEST_CASE("asking a worker of another version is an error of its own") {
  zmq::context_t context;
  auto router = bind_somewhere(context);
  REQUIRE(router);
  Result<Bytes> answer;
  std::thread asker([&] { answer = wire::ask(wire::bound_endpoint(*router), sample_request(), in(patience)); });
  answer_once(*router, wire::encode_unsupported());
  asker.join();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ErrorCode::unsupported_protocol);
}

TEST_CASE("asking where nobody listens and where nobody answers times out at the deadline") {
  zmq::context_t context;
  auto silent = bind_somewhere(context);
  REQUIRE(silent);
  const ScratchDirectory directory;
  for (const std::string &endpoint : {wire::bound_endpoint(*silent), nobody_in(directory)}) {
    const MonotonicTime deadline = in(milliseconds(100));
    const auto answer = wire::ask(endpoint, sample_request(), deadline);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::timed_out);
    CHECK(answer.error().concerns == endpoint);
    CHECK(std::chrono::steady_clock::now() >= deadline);
    CHECK(std::chrono::steady_clock::now() < deadline + patience);
  }
}

TEST_CASE("the control socket works in a directory whose path is longer than a socket address") {
  const ScratchDirectory directory;
  const auto deep = directory.path() / std::string(120, 'd') / std::string(120, 'e');
  std::filesystem::create_directories(deep);
  const auto control = wire::ControlEndpoint::in(deep);
  REQUIRE(control);
  zmq::context_t context;
  auto router = wire::bind_replies(context, control->endpoint());
  REQUIRE(router);
  CHECK(std::filesystem::is_socket(deep / "control.sock"));

  Result<Bytes> answer;
  std::thread asker([&] { answer = wire::ask_directory(deep, sample_request(), in(patience)); });
  answer_once(*router, wire::encode_answer(sample_answer()));
  asker.join();
  REQUIRE(answer);
  CHECK(*answer == sample_answer());
}

TEST_CASE("a directory that is not there has no control socket") {
  const ScratchDirectory directory;
  const auto asked = wire::ask_directory(directory.path() / "absent", sample_request(), in(patience));
  REQUIRE_FALSE(asked);
  CHECK(asked.error().code == ErrorCode::not_found);
}

TEST_CASE("what is left until a deadline is never negative and never rounded down to nothing") {
  CHECK(wire::left_until(in(milliseconds(-500))) == milliseconds(0));
  CHECK(wire::left_until(std::chrono::steady_clock::now() + std::chrono::hours(1)) > milliseconds(3'500'000));
  CHECK(wire::left_until(std::chrono::steady_clock::now() + std::chrono::hours(1)) <= milliseconds(3'600'000));
}

TEST_CASE("the rest of a multipart message is discarded and the next message is whole") {
  zmq::context_t context;
  auto pull = wire::bind_jobs(context, "tcp://127.0.0.1:*");
  REQUIRE(pull);
  pull->set(zmq::sockopt::rcvtimeo, static_cast<int>(patience.count()));
  auto push = wire::connect_jobs(context, wire::bound_endpoint(*pull));
  REQUIRE(push);
  push->set(zmq::sockopt::sndtimeo, static_cast<int>(patience.count()));
  for (const std::string_view part : {"first", "second", "third"})
    REQUIRE(push->send(zmq::buffer(part), part == "third" ? zmq::send_flags::none : zmq::send_flags::sndmore));
  REQUIRE(push->send(zmq::str_buffer("next"), zmq::send_flags::none));

  zmq::message_t message;
  REQUIRE(pull->recv(message, zmq::recv_flags::none));
  CHECK(message.to_string() == "first");
  wire::discard_rest(*pull);
  REQUIRE(pull->recv(message, zmq::recv_flags::none));
  CHECK(message.to_string() == "next");
  wire::discard_rest(*pull); // of a message of one part: nothing to do
}

TEST_CASE("a bell rings the poll of the thread that owns the sockets until it is cleared") {
  Wake wake;
  const auto rings = [&] {
    zmq::pollitem_t item{.socket = nullptr, .fd = wake.descriptor(), .events = ZMQ_POLLIN, .revents = 0};
    return zmq::poll(&item, 1, milliseconds(0)) == 1;
  };
  CHECK_FALSE(rings());
  std::thread([&] {
    wake.ring();
    wake.ring();
  }).join();
  CHECK(rings());
  wake.clear();
  CHECK_FALSE(rings());
  wake.clear(); // of a silent bell: does not block
}

} // namespace
} // namespace onced::testing
