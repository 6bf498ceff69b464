#include "onced/version.hpp"

#include <msgpack/version.hpp>
#include <openssl/crypto.h>
#include <rocksdb/version.h>
#include <zmq.h>

// Written at build time, when the commit has changed (cmake/version.cmake).
#include "onced_commit.hpp"

namespace onced {
namespace {

#if defined(__clang__)
constexpr std::string_view compiler = "clang " __clang_version__;
#else
constexpr std::string_view compiler = "gcc " __VERSION__;
#endif

constexpr std::string_view build = ONCED_VERSION "+" ONCED_COMMIT;
static_assert(build.size() <= 64, "rows record it");

std::string zmq_running() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

} // namespace

Version version() {
  return {ONCED_VERSION,
          ONCED_COMMIT,
          compiler,
          ONCED_BUILD_TYPE,
          {{"rocksdb", rocksdb::GetRocksVersionAsString()},
           {"libzmq", zmq_running()},
           {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
           {"msgpack", msgpack_version()}},
          ONCED_ROCKSDB_ASSERTS != 0};
}

std::string_view worker_build() {
  return build;
}

} // namespace onced
