#include "onced/version.hpp"

#include <fmt/format.h>

#include "version.hpp"

namespace onced::tools {
namespace {

Json json_of(const Version &version) {
  Json libraries = Json::object();
  for (const auto &[name, number] : version.libraries) {
    libraries[std::string(name)] = number;
  }
  return {{"version", version.number},
          {"commit", version.commit},
          {"compiler", version.compiler},
          {"build_type", version.build_type},
          {"libraries", libraries},
          {"rocksdb_asserts", version.rocksdb_asserts},
          {"wire_versions", Json::array({wire_version})},
          {"disk_format", disk_format}};
}

std::string text_of(const Version &version) {
  std::string text = fmt::format("onced {} ({})\nbuilt {} with {}\n", version.number, version.commit,
                                 version.build_type, version.compiler);
  for (const auto &[name, number] : version.libraries) {
    const bool asserts = name == "rocksdb" && version.rocksdb_asserts;
    text += fmt::format("{} {}{}\n", name, number, asserts ? ", with its assertions" : "");
  }
  return text + fmt::format("wire version {}, disk format {}\n", wire_version, disk_format);
}

} // namespace

ExitCode run_version(bool json, Output &output) {
  const Version version = onced::version();
  if (json) {
    output.line(json_of(version));
  } else {
    output.text(text_of(version));
  }
  if (const auto flushed = output.flush(); !flushed) return report(flushed.error());
  return ExitCode::ok;
}

} // namespace onced::tools
