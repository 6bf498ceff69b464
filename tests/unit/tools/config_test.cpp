#include "config.hpp"

#include <fstream>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"

using namespace onced;
using namespace onced::tools;

namespace {

const ConfigSchema schema{
    {"serve", {{"data", SettingKind::text}, {"workers", SettingKind::integer}, {"accept-loss", SettingKind::flag}}},
    {"send", {{"deadline", SettingKind::text}}},
    {"dead-letters.list", {{"limit", SettingKind::integer}}},
};

std::string refusal(const std::string &toml) {
  const auto config = parse_config(toml, "onced.toml", schema);
  if (config) return "accepted";
  CHECK(config.error().code == ErrorCode::configuration);
  return describe(config.error());
}

} // namespace

TEST_CASE("settings are read from the table of their command with their lines") {
  const auto config = parse_config("[serve]\ndata = \"/var/lib/onced\"\nworkers = 4\naccept-loss = true\n"
                                   "[dead-letters.list]\nlimit = 10\n",
                                   "onced.toml", schema);
  REQUIRE(config.has_value());
  CHECK(config->tables.size() == 2);
  const auto &serve = config->tables.at("serve");
  CHECK(serve.at("data").value == "/var/lib/onced");
  CHECK(serve.at("data").line == 2);
  CHECK(serve.at("workers").value == "4");
  CHECK(serve.at("accept-loss").value == "true");
  CHECK(config->tables.at("dead-letters.list").at("limit").value == "10");
}

TEST_CASE("an empty file holds no settings") {
  const auto config = parse_config("# nothing\n[serve]\n", "onced.toml", schema);
  REQUIRE(config.has_value());
  CHECK(config->tables.empty());
}

TEST_CASE("an unknown key is refused with file and line and the keys there are") {
  CHECK(refusal("[serve]\n\nworker = 4\n") ==
        "onced.toml:3: serve.worker: there is no such key in [serve]; keys: accept-loss, data, workers");
}

TEST_CASE("an unknown table is refused with the tables there are") {
  const std::string tables = "tables: dead-letters.list, send, serve, handlers.TYPE, relays.NAME";
  CHECK(refusal("[server]\n") == "onced.toml:1: server: there is no such table or key here; " + tables);
  CHECK(refusal("data = \"x\"\n") == "onced.toml:1: data: there is no such table or key here; " + tables);
  CHECK(refusal("[dead-letters]\nlimit = 1\n") ==
        "onced.toml:2: dead-letters.limit: there is no such table or key here; " + tables);
  CHECK(refusal("[serve.inner]\n").rfind("onced.toml:1: serve.inner: there is no such key in [serve]", 0) == 0);
  CHECK(refusal("[dead]\n").rfind("onced.toml:1: dead: there is no such table", 0) == 0);
}

TEST_CASE("a value of the wrong type is refused with the type there should be") {
  CHECK(refusal("[serve]\nworkers = \"4\"\n") ==
        "onced.toml:2: serve.workers: wrong type; write an integer without quotes");
  CHECK(refusal("[serve]\nworkers = 4.0\n") ==
        "onced.toml:2: serve.workers: wrong type; write an integer without quotes");
  CHECK(refusal("[serve]\ndata = 4\n") == "onced.toml:2: serve.data: wrong type; write a string in quotes");
  CHECK(refusal("[serve]\naccept-loss = 1\n") == "onced.toml:2: serve.accept-loss: wrong type; write true or false");
  CHECK(refusal("serve = 1\n") == "onced.toml:1: serve: this is a table; write [serve]");
  CHECK(refusal("[[serve]]\n") == "onced.toml:1: serve: this is a table; write [serve]");
}

TEST_CASE("what is not TOML is refused with its line") {
  for (const char *toml : {"[serve]\ndata = \n", "[serve]\ndata = \"a\"\ndata = \"b\"\n", "[serve]\nnonsense\n"}) {
    CAPTURE(toml);
    CHECK(refusal(toml).rfind("onced.toml:", 0) == 0);
    CHECK(refusal(toml).find(": not TOML: ") != std::string::npos);
  }
}

TEST_CASE("a file that is not there is not found") {
  const ScratchDirectory directory;
  const std::string file = directory.path() / "absent.toml";
  const auto config = read_config(file, schema);
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().code == ErrorCode::not_found);
  CHECK(config.error().concerns == file);
}

TEST_CASE("a file is read to its end") {
  const ScratchDirectory directory;
  const std::string file = directory.path() / "onced.toml";
  std::ofstream(file) << "[send]\n" << std::string(15'000, '\n') << "deadline = \"5m\"";
  const auto config = read_config(file, schema);
  REQUIRE(config.has_value());
  CHECK(config->tables.at("send").at("deadline").value == "5m");
  CHECK(config->tables.at("send").at("deadline").line == 15'002);
}
