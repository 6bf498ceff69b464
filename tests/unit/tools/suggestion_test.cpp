#include "suggestion.hpp"

#include <doctest/doctest.h>

using namespace onced::tools;

TEST_CASE("the word that was meant is one slip of the hand away, or one in three letters") {
  const std::vector<std::string> names{"serve", "send", "get", "count", "dead-letters"};
  CHECK(suggestion_for("serv", names) == "serve");
  CHECK(suggestion_for("sned", names) == "send");
  CHECK(suggestion_for("coutn", names) == "count");
  CHECK(suggestion_for("deadletters", names) == "dead-letters");
  CHECK(suggestion_for("gt", names) == "get");
}

TEST_CASE("a word that is like none has no suggestion") {
  const std::vector<std::string> names{"serve", "send"};
  CHECK(suggestion_for("listen", names).empty());
  CHECK(suggestion_for("", names).empty());
  CHECK(suggestion_for(std::string(10'000, 's'), names).empty());
  CHECK(suggestion_for("serve", {}).empty());
}
