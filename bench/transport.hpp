#pragma once

#include <filesystem>
#include <string>

namespace onced::bench {

// How two processes of this machine talk: over loopback tcp, or over a unix socket, as the peers' clients do.
inline constexpr const char *tcp = "tcp";
inline constexpr const char *ipc = "ipc";

// What to bind: a free port, or a socket without a file, whose name is that of a directory of its own.
[[nodiscard]] inline std::string endpoint_to_bind(const std::string &transport, const std::filesystem::path &directory,
                                                  const std::string &name) {
  if (transport == tcp) return "tcp://127.0.0.1:*";
  return "ipc://@" + directory.filename().string() + "-" + name;
}

} // namespace onced::bench
