#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "onced/digest.hpp"
#include "unit/job/support.hpp"

// Holds the parser to tests/vectors/jobs.json, which another implementation wrote (tests/vectors/README.md).
using namespace onced;
using namespace onced::testing;

namespace {

nlohmann::json vectors() {
  std::ifstream file(ONCED_TESTS_DIR "/vectors/jobs.json");
  REQUIRE(file.is_open());
  return nlohmann::json::parse(file);
}

} // namespace

TEST_CASE("every accepted vector has the fields and form and key and digest it names") {
  const nlohmann::json all = vectors();
  REQUIRE(all.at("version") == canonical_form_version);
  REQUIRE(all.at("accepted").size() >= 40);
  JobParser parser;
  Digester digester;
  Job job;
  Key key;
  for (const auto &vector : all.at("accepted")) {
    CAPTURE(vector.at("name"));
    const auto parsed = parser.parse(hex(vector.at("job_hex").get<std::string>()), job);
    REQUIRE(parsed.has_value());
    CHECK(job.type == vector.at("type").get<std::string>());
    CHECK(job.operation_id == vector.at("operation_id").get<std::string>());
    const auto &effect_key = vector.at("effect_key");
    CHECK(job.effect_key == (effect_key.is_null() ? "" : effect_key.get<std::string>()));
    CHECK(to_hex(job.payload) == vector.at("canonical_hex").get<std::string>());
    assign_key(job, key);
    CHECK(to_hex(key.bytes) == vector.at("key_hex").get<std::string>());
    CHECK(to_hex(digester.intent(job.type, job.payload).view()) == vector.at("digest_hex").get<std::string>());
  }
}

TEST_CASE("every refused vector is refused for its reason") {
  const nlohmann::json all = vectors();
  std::set<std::string> reasons;
  for (const auto &vector : all.at("refused")) {
    CAPTURE(vector.at("name"));
    Bytes bytes = hex(vector.at("job_hex").get<std::string>());
    bytes.append(vector.value("zeros_appended", std::size_t{0}), '\0');
    CHECK(verdict(bytes) == vector.at("reason").get<std::string>());
    reasons.insert(vector.at("reason").get<std::string>());
  }
  for (const std::string_view name : job_defect_names) {
    CAPTURE(name);
    CHECK(reasons.contains(std::string(name)));
  }
}
