#include "rehearsal/toml_depth.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "onced/limits.hpp"

namespace onced::rehearsal {
namespace {

// Walks over a text as a parser would up to the first mistake, where toml++ stops as well.
class Walk {
public:
  explicit Walk(std::string_view toml) : toml_(toml) {}

  std::optional<std::uint32_t> run() {
    while (at_ < toml_.size()) {
      const char character = toml_[at_];
      if (character == '"' || character == '\'') {
        skip_string(character);
      } else if (character == '#') {
        at_ = std::min(toml_.find('\n', at_), toml_.size());
      } else {
        step(character);
        if (parts_ > limits::nesting_max || depth_ > limits::nesting_max) return line_;
        ++at_;
      }
    }
    return std::nullopt;
  }

private:
  void step(char character) {
    switch (character) {
    case '\n':
      ++line_;
      parts_ = 1;
      break;
    case '.':
      ++parts_;
      break;
    case '[':
    case '{':
      ++depth_;
      parts_ = 1;
      break;
    case ']':
    case '}':
      if (depth_ > 0) --depth_;
      break;
    case ',':
    case '=':
      parts_ = 1;
      break;
    default:
      break;
    }
  }

  // Of one line, or of many in three quotes.
  void skip_string(char quote) {
    const bool is_long = toml_.substr(at_, 3) == std::string(3, quote);
    at_ += is_long ? 3 : 1;
    for (; at_ < toml_.size(); ++at_) {
      const char character = toml_[at_];
      if (character == '\n') {
        if (!is_long) return; // a mistake
        ++line_;
      } else if (character == '\\' && quote == '"') {
        if (at_ + 1 < toml_.size() && toml_[at_ + 1] != '\n') ++at_;
      } else if (character == quote && (!is_long || toml_.substr(at_, 3) == std::string(3, quote))) {
        at_ += is_long ? 3 : 1;
        // Up to two more quotes at the end of a long one are its own.
        for (int more = 0; is_long && more < 2 && at_ < toml_.size() && toml_[at_] == quote; ++more)
          ++at_;
        return;
      }
    }
  }

  std::string_view toml_;
  std::size_t at_ = 0;
  std::size_t parts_ = 1; // of the key, or of the number, that is being written
  std::size_t depth_ = 0;
  std::uint32_t line_ = 1;
};

} // namespace

std::optional<std::uint32_t> line_too_deep(std::string_view toml) {
  return Walk(toml).run();
}

} // namespace onced::rehearsal
