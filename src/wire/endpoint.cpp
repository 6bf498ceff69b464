#include "wire/endpoint.hpp"

#include <array>
#include <memory>
#include <string_view>

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "base/numbers.hpp"

namespace onced::wire {
namespace {

constexpr std::string_view tcp = "tcp://";
// What the address of a Unix socket holds, less the byte that ends it.
constexpr std::size_t ipc_path_bytes_max = 107;
constexpr std::uint64_t port_max = 65'535;

tl::unexpected<Error> wrong(const std::string &text, std::string cause, std::string remedy) {
  return tl::unexpected(
      Error{ErrorCode::endpoint, text.empty() ? "an endpoint" : text, std::move(cause), std::move(remedy)});
}

Result<Endpoint> read_ipc(const std::string &text) {
  const std::size_t bytes = text.size() - ipc_scheme.size();
  if (bytes == 0) return wrong(text, "it has no path", "give a path, such as ipc:///run/onced/jobs");
  if (text.find('\0') != std::string::npos) return wrong(text, "its path has a NUL", "give a path of a socket");
  if (bytes > ipc_path_bytes_max) {
    return wrong(text, "its path has " + std::to_string(bytes) + " bytes, and the address of a socket holds 107",
                 "give a shorter path");
  }
  return Endpoint{text, false};
}

bool is_address(int family, const std::string &host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(family, host.c_str(), bytes.data()) == 1;
}

// The number of a name of this machine, IPv4 before IPv6; empty where there is none.
std::string number_of_name(const std::string &host) {
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo *first = nullptr;
    if (::getaddrinfo(host.c_str(), nullptr, &hints, &first) != 0) continue;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(first, ::freeaddrinfo);
    std::array<char, NI_MAXHOST> number{};
    if (::getnameinfo(found->ai_addr, found->ai_addrlen, number.data(), number.size(), nullptr, 0, NI_NUMERICHOST) ==
        0) {
      return number.data();
    }
  }
  return {};
}

bool is_port(std::string_view port, EndpointUse use) {
  if (use == EndpointUse::bind && port == "*") return true;
  return parse_whole(port, use == EndpointUse::bind ? 0 : 1, port_max).has_value();
}

// What ZeroMQ binds is a number, `*` or an interface; it looks no name up.
Result<Endpoint> bound(const std::string &text, const std::string &host, const std::string &port) {
  if (host == "*" || is_address(AF_INET, host) || ::if_nametoindex(host.c_str()) != 0) return Endpoint{text, false};
  const std::string number = number_of_name(host);
  if (number.empty()) {
    return wrong(text, "there is no host or interface '" + host + "'", "give an address of this machine, or *");
  }
  const bool is_ipv6 = is_address(AF_INET6, number);
  return Endpoint{std::string(tcp) + (is_ipv6 ? "[" + number + "]" : number) + ":" + port, is_ipv6};
}

Result<Endpoint> read_tcp(const std::string &text, EndpointUse use) {
  const std::size_t colon = text.rfind(':');
  if (colon < tcp.size()) return wrong(text, "it has no port", "write tcp://HOST:PORT, such as tcp://127.0.0.1:5570");
  const std::string host = text.substr(tcp.size(), colon - tcp.size());
  const std::string port = text.substr(colon + 1);
  if (!is_port(port, use)) {
    return wrong(text, "'" + port + "' is no port",
                 use == EndpointUse::bind ? "give 0 to 65535; 0 or * takes a free one" : "give 1 to 65535");
  }
  if (host.starts_with('[') || host.ends_with(']')) {
    const bool closed = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
    if (!closed || !is_address(AF_INET6, host.substr(1, host.size() - 2))) {
      return wrong(text, "'" + host + "' is no IPv6 address in brackets", "write one such as [::1]");
    }
    return Endpoint{text, true};
  }
  constexpr std::string_view in_no_host = " \t/:;@[]";
  const bool odd = host.empty() || host.find_first_of(in_no_host) != std::string::npos ||
                   host.find('\0') != std::string::npos || (host == "*" && use == EndpointUse::connect);
  if (odd) {
    return wrong(text, "'" + host + "' is no host",
                 "give a name or an address such as 127.0.0.1; an IPv6 address stands in brackets");
  }
  if (use == EndpointUse::bind) return bound(text, host, port);
  return Endpoint{text, false};
}

} // namespace

Result<Endpoint> read_endpoint(const std::string &text, EndpointUse use) {
  if (text.starts_with(ipc_scheme)) return read_ipc(text);
  if (text.starts_with(tcp)) return read_tcp(text, use);
  return wrong(text, "it begins with neither tcp:// nor ipc://",
               "give an endpoint such as tcp://127.0.0.1:5570 or ipc:///run/onced/jobs");
}

} // namespace onced::wire
