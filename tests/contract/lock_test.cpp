// A data directory has one worker.
#include <doctest/doctest.h>

#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

TEST_CASE("a second worker on a directory exits and says who holds it and the first goes on") {
  WorkerProcess first;
  first.start();
  RawPeer peer(first);
  peer.greet();
  CHECK(peer.deliver_one(job_bytes("before", {1})).outcome == Outcome::stored);

  const WorkerProcess second(first.data());
  const Finished other_ports = run_command(second.serve());
  const Finished same_ports = run_command(first.serve()); // the lock is taken before any socket is bound
  for (const Finished &refused : {other_ports, same_ports}) {
    CHECK(refused.exit == 73);
    CHECK(refused.output.empty());
    CHECK(refused.errors.find("process " + std::to_string(first.process().id())) != std::string::npos);
    CHECK(refused.errors.find(first.data().string()) != std::string::npos);
  }

  CHECK(peer.deliver_one(job_bytes("after", {1})).outcome == Outcome::stored); // through the same connections
  CHECK(first.rows() == Rows{2, 0});                                           // through its control socket
  CHECK(run_command(first.send(), jobs_as_json("new", 1)).exit == 0);          // through new connections
  CHECK(first.stop() == 0);
}

TEST_CASE("a worker that was killed leaves no lock behind") {
  WorkerProcess first;
  first.start();
  first.kill_now();
  WorkerProcess second(first.data());
  second.start();
  CHECK(second.stop() == 0);
  first.start();
  CHECK(first.stop() == 0);
}

TEST_CASE("two workers on two directories do not see each other") {
  WorkerProcess first;
  WorkerProcess second;
  first.start();
  second.start();
  CHECK(run_command(first.send(), jobs_as_json("job", 3)).exit == 0);
  CHECK(first.rows() == Rows{3, 0});
  CHECK(second.rows() == Rows{0, 0});
}

TEST_CASE("an endpoint that is taken is exit code 69 and leaves the directory free") {
  WorkerProcess first;
  first.start();
  WorkerProcess second;
  const Finished refused =
      run_command({"serve", "--data", second.data().string(), "--jobs", first.jobs(), "--replies", second.replies()});
  CHECK(refused.exit == 69);
  CHECK(refused.errors.find(first.jobs()) != std::string::npos);
  second.start();
  CHECK(second.stop() == 0);
  CHECK(run_command(first.send(), jobs_as_json("job", 1)).exit == 0);
}
