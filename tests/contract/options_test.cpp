// Every number that the command takes, on its command line or in a configuration file: what is no number in its range
// is refused, and named. The options are those that --help shows, so that none is forgotten.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "support/worker_process.hpp"

using namespace onced::testing;

namespace {

struct Option {
  Arguments command;
  std::string name;
  std::string type; // as the help shows it

  [[nodiscard]] std::string words() const {
    std::string words = name + " of";
    for (const std::string &word : command)
      words += " " + word;
    return words;
  }
};

const std::vector<Arguments> commands{{"serve"},
                                      {"send"},
                                      {"get"},
                                      {"count"},
                                      {"dead-letters", "list"},
                                      {"dead-letters", "show"},
                                      {"dead-letters", "redrive"},
                                      {"dead-letters", "purge"},
                                      {"pending", "list"},
                                      {"pending", "show"},
                                      {"pending", "resolve"},
                                      {"audit"},
                                      {"stats"},
                                      {"verify"},
                                      {"bench"},
                                      {"rehearse"}};

// The types of values that are no numbers; `Needs` stands where a flag needs another option.
const std::set<std::string> words_and_files{
    "FILE",  "DIR",       "ENDPOINT",         "TEXT",           "WHO", "JSON", "SCENARIO", "GROUP", "DECISION",
    "Needs", "text|json", "fsync|page-cache", "json|prometheus"};

std::vector<Option> options_in(const Arguments &command, const std::string &help) {
  static const std::regex line(R"((?:^|\n)  (?:-\w,)?(--[a-z-]+) ([^\s:=]+))");
  std::vector<Option> options;
  for (auto at = std::sregex_iterator(help.begin(), help.end(), line); at != std::sregex_iterator(); ++at)
    options.push_back({command, (*at)[1], (*at)[2]});
  return options;
}

// The options whose values are numbers, of every subcommand.
const std::vector<Option> &numbers() {
  static const std::vector<Option> all = [] {
    std::vector<Option> found;
    for (const Arguments &command : commands) {
      for (const Option &option : options_in(command, run_command(command + Arguments{"--help"}).output)) {
        if (!words_and_files.contains(option.type)) found.push_back(option);
      }
    }
    return found;
  }();
  return all;
}

// What an option of this type says of a number: its unit is added.
std::string with_unit(const Option &option, const std::string &number) {
  if (option.type == "DURATION") return number + "s";
  if (option.type == "SIZE") return number + "MiB";
  if (option.type == "N/s") return number + "/s";
  if (option.type == "NAME") return "worker.parsed:" + number; // NAME:N
  return number;
}

// Any 64 bits are a seed, and an arrival that is never met is none.
bool takes_any_64_bits(const Option &option) {
  return option.name == "--seed" || option.name == "--kill-at";
}

void check_refused(const Option &option, const std::string &value) {
  CAPTURE(option.words());
  CAPTURE(value);
  const Finished refused = run_command(option.command + Arguments{option.name, value});
  CHECK(refused.exit == 64);
  CHECK(refused.errors.find(option.name + ": ") != std::string::npos);
}

} // namespace

TEST_CASE("the help shows every number with a type that the tests below know") {
  std::set<std::string> types;
  std::set<std::string> names;
  for (const Option &option : numbers()) {
    types.insert(option.type);
    names.insert(option.name);
  }
  CHECK(types == std::set<std::string>{"DURATION", "N/s", "NAME", "SHARE", "SIZE", "UINT"});
  for (const char *name :
       {"--workers", "--memory", "--senders", "--dead-letters-max", "--dead-letter-bytes-max", "--drop-replies",
        "--seed", "--kill-at", "--copies", "--window", "--loss", "--deadline", "--rate", "--limit", "--after"}) {
    CAPTURE(name);
    CHECK(names.contains(name));
  }
}

TEST_CASE("a number that is none, or out of its range, is refused and its option named") {
  for (const Option &option : numbers()) {
    for (const char *number : {"-1", "18446744073709551616", "0x10", " 1", ""})
      check_refused(option, with_unit(option, number));
    if (!takes_any_64_bits(option)) check_refused(option, with_unit(option, "18446744073709551615"));
    if (option.type != "N/s") check_refused(option, with_unit(option, "1e3")); // a rate may be written so
    if (option.type != "UINT" && option.type != "SIZE" && option.type != "SHARE") check_refused(option, "1");
  }
}

TEST_CASE("a number of a configuration file is held to the same range, and its line is named") {
  const ScratchDirectory directory;
  for (const Option &option : numbers()) {
    CAPTURE(option.words());
    std::string table;
    for (const std::string &word : option.command)
      table += (table.empty() ? "" : ".") + word;
    const bool is_number = option.type == "UINT" || option.type == "SIZE" || option.type == "SHARE";
    const std::string value = is_number ? "-1" : '"' + with_unit(option, "-1") + '"';
    const std::string file = (directory.path() / "onced.toml").string();
    std::ofstream(file) << "[" << table << "]\n" << option.name.substr(2) << " = " << value << "\n";
    Arguments line = option.command + Arguments{"--config", file};
    for (const char *needs_id : {"get", "show", "resolve"}) {
      if (option.command.back() == needs_id) line.emplace_back(32, 'a');
    }
    const Finished refused = run_command(line);
    CHECK(refused.exit == 78);
    CHECK(refused.errors.find(file + ":2: " + table + "." + option.name.substr(2)) != std::string::npos);
  }
}

TEST_CASE("sizes and shares of a configuration file are numbers or text") {
  const ScratchDirectory directory;
  const WorkerProcess worker;
  const std::string file = (directory.path() / "onced.toml").string();
  for (const char *settings : {"memory = 1\ndrop-replies = 0.5", "memory = \"1MiB\"\ndrop-replies = \"0.5\""}) {
    std::ofstream(file) << "[serve]\n" << settings << "\n";
    const Finished refused = run_command(worker.serve({"--config", file}));
    CHECK(refused.exit == 64); // by the plan of memory, so both were read
    CHECK(refused.errors.find("memory: ") != std::string::npos);
  }
}

TEST_CASE("handlers at once that the memory does not cover are refused with the numbers, before there is a directory") {
  const ScratchDirectory directory;
  const WorkerProcess worker;
  const std::string file = (directory.path() / "onced.toml").string();
  std::ofstream(file) << "[handlers.pay]\ncommand = [\"/bin/true\"]\nconcurrency = 64\n";
  const Finished refused = run_command(worker.serve({"--config", file}));
  CHECK(refused.exit == 64);
  CHECK(refused.errors.find("64 handlers at once 408 MiB") != std::string::npos);
  CHECK(refused.errors.find("concurrency") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(worker.data()));
}

TEST_CASE("what is wrong with the way a word is written is said with the word that was meant") {
  const std::vector<std::pair<Arguments, std::string>> wrong{
      {{"serv", "--data", "d"}, "'serv' is no subcommand of onced; did you mean serve?"},
      {{"dead-letters", "lst"}, "'lst' is no subcommand of dead-letters; did you mean list?"},
      {{"serve", "--dta", "d"}, "'--dta' is no option of serve; did you mean --data?"},
      {{"serve", "--data", "d", "--jbos=x"}, "did you mean --jobs?"},
      {{"count", "--prot", "1", "--other"}, "'--prot' is no option of count, which has --help, --config, --data"},
      {{"get", "-x", "--data", "d"}, "if it is OPERATION_ID, write it last, after --"},
      {{"get", "a", "b", "--data", "d"}, "'b' is one argument too many"},
  };
  for (const auto &each : wrong) {
    const std::string words = each.second;
    const Finished refused = run_command(each.first);
    CAPTURE(words);
    CAPTURE(refused.errors);
    CHECK(refused.exit == 64);
    CHECK(refused.errors.find(words) != std::string::npos);
  }
}

TEST_CASE("an id that begins with a dash is taken after two dashes") {
  WorkerProcess worker;
  worker.start();
  CHECK(run_command(worker.send(), "{\"operation_id\":\"-x\",\"numbers\":[1]}").exit == 0);
  const Finished got = run_command({"get", "--data", worker.data().string(), "--", "-x"});
  CHECK(got.exit == 0);
  CHECK(got.line()["operation_id"] == "-x");
}
