// Who may bind an ipc endpoint: what lies at its path is not removed unless a process that has ended left it there.
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zmq.hpp>

#include "support/store_harness.hpp"
#include "wire/endpoint_lock.hpp"
#include "wire/sockets.hpp"

namespace onced::testing {
namespace {

using wire::EndpointLock;

struct IpcScene {
  ScratchDirectory directory;
  std::filesystem::path path = directory.path() / "jobs.sock";
  std::string endpoint = "ipc://" + path.string();

  void check_refused(const char *cause) const {
    const auto refused = EndpointLock::take(endpoint);
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == ErrorCode::endpoint);
    CHECK(refused.error().concerns == endpoint);
    CHECK(refused.error().cause.find(cause) != std::string::npos);
  }
};

} // namespace

TEST_CASE("an ipc endpoint is held by one and free again when it ends") {
  const IpcScene scene;
  {
    const auto first = EndpointLock::take(scene.endpoint);
    REQUIRE(first.has_value());
    scene.check_refused("another process");
  }
  CHECK(EndpointLock::take(scene.endpoint).has_value());
}

TEST_CASE("a socket that somebody listens at without a lock is not taken over") {
  const IpcScene scene;
  zmq::context_t context;
  const auto bound = wire::bind_jobs(context, scene.endpoint);
  REQUIRE(bound.has_value());
  scene.check_refused("another process");
  CHECK(std::filesystem::is_socket(scene.path));
}

TEST_CASE("a socket that a process has left behind is free") {
  const IpcScene scene;
  {
    zmq::context_t context;
    const auto bound = wire::bind_jobs(context, scene.endpoint);
    REQUIRE(bound.has_value());
    std::filesystem::create_hard_link(scene.path, scene.directory.path() / "left.sock");
  }
  CHECK(EndpointLock::take("ipc://" + (scene.directory.path() / "left.sock").string()).has_value());
}

TEST_CASE("what is no socket is refused and stays") {
  const IpcScene file;
  std::ofstream(file.path) << "precious";
  file.check_refused("no socket");
  CHECK(std::filesystem::file_size(file.path) == 8);

  const IpcScene folder;
  std::filesystem::create_directory(folder.path);
  folder.check_refused("no socket");
  CHECK(std::filesystem::is_directory(folder.path));

  const IpcScene link;
  std::filesystem::create_symlink(file.path, link.path);
  link.check_refused("no socket");
  CHECK(std::filesystem::is_symlink(link.path));

  const IpcScene pipe;
  REQUIRE(::mkfifo(pipe.path.c_str(), 0600) == 0);
  pipe.check_refused("no socket");
  CHECK(std::filesystem::is_fifo(pipe.path));
}

TEST_CASE("a lock file that cannot be made is the error of its endpoint") {
  const IpcScene scene;
  std::filesystem::create_symlink("/dev/null", scene.path.string() + ".lock");
  scene.check_refused("its lock");
}

TEST_CASE("other transports and abstract names refuse a second bind by themselves") {
  const std::string abstract = "ipc://@onced-test-" + std::to_string(::getpid());
  for (const std::string &endpoint : {abstract, std::string("tcp://127.0.0.1:*")}) {
    CAPTURE(endpoint);
    const auto lock = EndpointLock::take(endpoint);
    CHECK(lock.has_value());
    zmq::context_t context;
    auto first = wire::bind_jobs(context, endpoint);
    REQUIRE(first.has_value());
    const auto second = wire::bind_jobs(context, endpoint.ends_with('*') ? wire::bound_endpoint(*first) : endpoint);
    REQUIRE(!second.has_value());
    CHECK(second.error().code == ErrorCode::endpoint);
  }
}

} // namespace onced::testing
