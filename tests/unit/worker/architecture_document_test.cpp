// The page that shows a reader the way through the code names files and functions that there are. It does not show that
// they do what the page says.
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "support/document.hpp"
#include "support/file_content.hpp"

namespace onced::testing {
namespace {

const std::string root = std::string(ONCED_TESTS_DIR) + "/../";

// A function that is defined in this text: its name, at the beginning of a word, and an opening parenthesis.
bool defines(const std::string &text, const std::string &function) {
  const std::string name = function.substr(function.rfind(':') + 1);
  return text.find(function + '(') != std::string::npos || text.find(' ' + name + '(') != std::string::npos;
}

} // namespace

TEST_CASE("each function that the page of the architecture names is in the file that it names") {
  const std::string page = content_of(root + "docs/architecture.md");
  const std::regex place("`((?:src|include|tests)/[a-z_/.]+): ([A-Za-z_:]+)`(?:, `([A-Z][A-Za-z_]+::[a-z_]+)`)*");
  std::size_t places = 0;
  for (auto found = std::sregex_iterator(page.begin(), page.end(), place); found != std::sregex_iterator(); ++found) {
    CAPTURE(found->str());
    ++places;
    REQUIRE(std::filesystem::is_regular_file(root + found->str(1)));
    CHECK(defines(content_of(root + found->str(1)), found->str(2)));
  }
  CHECK(places > 25);
}

TEST_CASE("each file that the page of the architecture names is there") {
  const std::string page = content_of(root + "docs/architecture.md");
  const std::regex file("`((?:src|include|tests|tools)/[a-z_/.]+)");
  for (auto found = std::sregex_iterator(page.begin(), page.end(), file); found != std::sregex_iterator(); ++found) {
    CAPTURE(found->str(1));
    CHECK(std::filesystem::exists(root + found->str(1)));
  }
}

} // namespace onced::testing
