// What may be bound and what may be connected to. Looks up no name but localhost.
#include "wire/endpoint.hpp"

#include <doctest/doctest.h>

#include "wire/sockets.hpp"

using namespace onced;
using wire::EndpointUse;
using wire::read_endpoint;

TEST_CASE("an endpoint of either kind is taken as it is") {
  for (const auto use : {EndpointUse::bind, EndpointUse::connect}) {
    for (const char *text :
         {"tcp://127.0.0.1:5570", "tcp://127.0.0.1:65535", "tcp://[::1]:5570", "ipc:///run/a/jobs", "ipc://jobs"}) {
      CAPTURE(text);
      const auto endpoint = read_endpoint(text, use);
      REQUIRE(endpoint.has_value());
      CHECK(endpoint->address == text);
      CHECK(endpoint->is_ipv6 == (std::string(text).find('[') != std::string::npos));
    }
  }
  for (const char *text : {"tcp://*:5570", "tcp://127.0.0.1:*", "tcp://127.0.0.1:0", "tcp://*:*", "tcp://lo:5570"}) {
    CAPTURE(text);
    CHECK(read_endpoint(text, EndpointUse::bind).has_value());
  }
  CHECK(read_endpoint("tcp://worker-1.example:5570", EndpointUse::connect).has_value());
}

TEST_CASE("what is no endpoint is refused with what is wrong") {
  for (const auto use : {EndpointUse::bind, EndpointUse::connect}) {
    for (const char *text : {"",
                             "no endpoint",
                             "127.0.0.1:5570",
                             "http://127.0.0.1:80",
                             "inproc://jobs",
                             "tcp://",
                             "tcp://127.0.0.1",
                             "tcp://:5570",
                             "tcp://127.0.0.1:",
                             "tcp://127.0.0.1:99999",
                             "tcp://127.0.0.1:65536",
                             "tcp://127.0.0.1:-1",
                             "tcp://127.0.0.1: 5570",
                             "tcp://127.0.0.1:+5570",
                             "tcp://127.0.0.1:0x10",
                             "tcp://127.0.0.1:5570/",
                             "tcp://::1:5570",
                             "tcp://[::1:5570",
                             "tcp://[localhost]:5570",
                             "tcp://a b:5570",
                             "tcp://a;b:5570",
                             "ipc://"}) {
      CAPTURE(text);
      const auto endpoint = read_endpoint(text, use);
      REQUIRE_FALSE(endpoint.has_value());
      CHECK(endpoint.error().code == ErrorCode::endpoint);
      CHECK_FALSE(endpoint.error().remedy.empty());
    }
  }
  CHECK_FALSE(read_endpoint("tcp://*:5570", EndpointUse::connect).has_value());
  CHECK_FALSE(read_endpoint("tcp://127.0.0.1:*", EndpointUse::connect).has_value());
  CHECK_FALSE(read_endpoint("tcp://127.0.0.1:0", EndpointUse::connect).has_value());
}

TEST_CASE("the path of an ipc endpoint has at most 107 bytes") {
  CHECK(read_endpoint("ipc://" + std::string(107, 'p'), EndpointUse::bind).has_value());
  const auto longer = read_endpoint("ipc://" + std::string(108, 'p'), EndpointUse::bind);
  REQUIRE_FALSE(longer.has_value());
  CHECK(longer.error().cause.find("108 bytes") != std::string::npos);
}

TEST_CASE("localhost and IPv6 can be bound and connected to") {
  for (const char *text : {"tcp://localhost:*", "tcp://[::1]:*"}) {
    CAPTURE(text);
    zmq::context_t context;
    auto jobs = wire::bind_jobs(context, text);
    if (!jobs && std::string(text).find('[') != std::string::npos) {
      MESSAGE("this machine has no IPv6");
      continue;
    }
    REQUIRE(jobs.has_value());
    const std::string port = wire::bound_endpoint(*jobs).substr(wire::bound_endpoint(*jobs).rfind(':'));
    const std::string there = std::string(text).substr(0, std::string(text).rfind(':')) + port;
    auto producer = wire::connect_jobs(context, there);
    REQUIRE(producer.has_value());
    producer->set(zmq::sockopt::sndtimeo, 30'000);
    jobs->set(zmq::sockopt::rcvtimeo, 30'000);
    CHECK(producer->send(zmq::str_buffer("job"), zmq::send_flags::none).has_value());
    zmq::message_t received;
    CHECK(jobs->recv(received).has_value());
  }
}
