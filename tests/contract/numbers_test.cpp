// Numbers through real processes: exact, one spelling a value, and never through a double that cannot hold them.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "support/job_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

Bytes job_of_floats(std::string_view id, const std::vector<double> &numbers) {
  Bytes out;
  messagepack::Writer writer(out);
  writer.map(2).string("operation_id").string(id).string("numbers").array(numbers.size());
  for (const double number : numbers)
    writer.floating(number);
  return out;
}

std::string json_job(const std::string &id, const std::string &numbers) {
  return R"({"operation_id":")" + id + R"(","numbers":)" + numbers + "}\n";
}

// Sends these `numbers` in JSON, all under one id and in this order; returns the outcomes, separated by spaces.
std::string sent_under_one_id(const WorkerProcess &worker, const std::string &id, const std::vector<std::string> &all) {
  std::string outcomes;
  for (const std::string &numbers : all) {
    const Finished sent = run_command(worker.send(), json_job(id, numbers));
    outcomes.append(outcomes.empty() ? "" : " ").append(sent.line()["outcome"]);
  }
  return outcomes;
}

struct Expected {
  const char *numbers;
  const char *outcome;
  const char *result;
};

} // namespace

TEST_CASE("two spellings of one number are one job") {
  WorkerProcess worker;
  worker.start();
  CHECK(sent_under_one_id(worker, "a", {"[1,2,3]", "[1.0,2,3]", "[10e-1,2.0,3e0]"}) == "stored duplicate duplicate");
  CHECK(sent_under_one_id(worker, "b", {"[-0.0]", "[0]", "[0.0]", "[-0]"}) == "stored duplicate duplicate duplicate");
  CHECK(sent_under_one_id(worker, "c", {"[0.5]", "[5e-1]", "[0.50]"}) == "stored duplicate duplicate");
  CHECK(worker.rows() == Rows{3, 0});
}

TEST_CASE("integers beside each other beyond the precision of doubles are two jobs") {
  WorkerProcess worker;
  worker.start();
  CHECK(sent_under_one_id(worker, "a", {"[9007199254740992]", "[9007199254740993]"}) == "stored conflict");
  CHECK(sent_under_one_id(worker, "b", {"[9223372036854775807]", "[9223372036854775806]"}) == "stored conflict");
  CHECK(sent_under_one_id(worker, "c", {"[9007199254740993]", "[9007199254740992.0]"}) == "stored conflict");
  CHECK(worker.rows() == Rows{3, 3});
}

TEST_CASE("floats of MessagePack meet the integers that they are") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const auto replies = peer.deliver({job_of_floats("a", {-0.0}), job_bytes("a", {0}), job_of_floats("b", {1.0, 2.0}),
                                     job_bytes("b", {1, 2}), job_bytes("c", {1LL << 53}),
                                     job_of_floats("c", {9007199254740992.0}), job_bytes("c", {(1LL << 53) + 1})});
  CHECK(outcomes_of(replies) == "stored duplicate stored duplicate stored duplicate conflict");
  CHECK(replies[0].result == integer_result(0));
  CHECK(replies[2].result == integer_result(3));
}

TEST_CASE("numbers that are not finite are invalid") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double number : {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity}) {
    const OwnReply reply = peer.deliver_one(job_of_floats("a", {1.0, number}));
    CHECK(reply.outcome == Outcome::invalid);
    CHECK(reply.detail == "not_finite");
  }
  CHECK(worker.rows() == Rows{0, 3});
}

TEST_CASE("a sum that fits is stored and one that does not is failed") {
  WorkerProcess worker;
  worker.start({"--workers", "1"}); // which answers in the order of the lines
  const std::vector<Expected> all{
      {"[9223372036854775807,1]", "failed", "absent"},
      {"[9223372036854775807,1,-1]", "stored", "9223372036854775807"},
      {"[-9223372036854775808,-1]", "failed", "absent"},
      {"[18446744073709551615,-9223372036854775808]", "stored", "9223372036854775807"},
      {"[18446744073709551615]", "failed", "absent"},
      {"[]", "stored", "0"},
      {"[0.5,0.5]", "stored", "1"},
      {"[0.1,0.2,0.3]", "stored", "0.6"},
      {"[1e308,1e308]", "failed", "absent"},
      {"[1e308,1e308,-1e308]", "stored", "1e+308"},
      {"[1e16,1,-1e16]", "stored", "1"},
  };
  std::string input;
  for (std::size_t at = 0; at < all.size(); ++at)
    input += json_job("n-" + std::to_string(at), all[at].numbers);
  const Finished sent = run_command(worker.send(), input);
  CHECK(sent.exit == 1);
  const auto lines = sent.lines();
  REQUIRE(lines.size() == all.size());
  for (std::size_t at = 0; at < all.size(); ++at) {
    CAPTURE(all[at].numbers);
    CHECK(lines[at]["outcome"] == all[at].outcome);
    CHECK(lines[at]["result"] == all[at].result);
  }
  CHECK(lines[0]["detail"].find("overflow") != std::string::npos);
  CHECK(worker.rows() == Rows{7, 4});
}

TEST_CASE("a failed job does not claim its key") {
  WorkerProcess worker;
  worker.start();
  CHECK(sent_under_one_id(worker, "a", {"[9223372036854775807,1]", "[9223372036854775807,1]", "[1]"}) ==
        "failed failed stored");
  CHECK(worker.rows() == Rows{1, 1});
}
