#include "crash/kills.hpp"

#include <regex>
#include <set>
#include <stdexcept>

namespace onced::crash {

std::vector<std::string> points_in(const std::string &help) {
  const std::regex point(R"((worker|sender)\.[a-z][a-z-]*[a-z])");
  std::set<std::string> names;
  const std::size_t option = help.find("--kill-at");
  if (option == std::string::npos) throw std::runtime_error("there is no --kill-at: " + help);
  const std::string text = help.substr(option);
  for (std::sregex_iterator match(text.begin(), text.end(), point); match != std::sregex_iterator(); ++match) {
    // A store is opened again only after its disk has failed, which tests/contract/store_failure_test.cpp does.
    if (!match->str().ends_with("-reopen")) names.insert(match->str());
  }
  if (names.empty()) throw std::runtime_error("--kill-at names no points: " + help);
  return {names.begin(), names.end()};
}

std::string Deck::deal() {
  if (left_.empty()) {
    left_ = all_;
    dice_.shuffle(left_);
  }
  std::string kill = left_.back();
  left_.pop_back();
  return kill;
}

} // namespace onced::crash
