#pragma once

#include <string>
#include <string_view>

#include "onced/error.hpp"

namespace onced::wire {

// What the endpoint of a socket in the file system begins with; the path follows.
inline constexpr std::string_view ipc_scheme = "ipc://";

// What an endpoint is for: a socket is bound to it, or connects to it.
enum class EndpointUse { bind, connect };

// An endpoint in the form that ZeroMQ takes.
struct Endpoint {
  std::string address; // a name of this machine that is to be bound is the number that it stands for
  bool is_ipv6 = false;
};

// The one place that reads an endpoint:
//   tcp://HOST:PORT   HOST is a name, an IPv4 address or an IPv6 address in brackets; PORT is 1 to 65535. To bind, HOST
//                     may also be `*` or the name of an interface, and PORT `*` or 0, a free one.
//   ipc://PATH        PATH has 1 to 107 bytes.
// ZeroMQ itself takes port 99999 for 34463, binds no name such as localhost, and tells of a wrong one in two words.
// Errors: `endpoint`, naming it and what is wrong. A name to be bound is looked up, which may take as long as the
// machine's resolver does.
[[nodiscard]] Result<Endpoint> read_endpoint(const std::string &text, EndpointUse use);

} // namespace onced::wire
