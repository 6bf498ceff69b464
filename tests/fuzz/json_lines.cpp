// What `onced send` reads: two bytes that say how, then lines. Verifies that lines come out as they went in, however
// the input is cut into pieces, that a line is read as JSON exactly where another reader of JSON takes it, that what
// becomes of it is a MessagePack value that turns back into the same, and that a refusal says why. Not: sending.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json_reader.hpp"
#include "base/json_value.hpp"
#include "fuzz.hpp"
#include "line_reader.hpp"
#include "onced/job.hpp"

namespace onced::fuzz {
namespace {

using tools::ReadEnd;

// Standard input from now on, of which one read gives one piece of `bytes`.
void feed_standard_input(BytesView bytes, std::size_t piece_bytes) {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) == 0, "there is a pair of sockets");
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
    const std::size_t piece = std::min(piece_bytes, bytes.size());
    require(::send(ends[0], bytes.data(), piece, MSG_DONTWAIT) == static_cast<ssize_t>(piece), "a piece fits a socket");
  }
  ::close(ends[0]);
  require(::dup2(ends[1], STDIN_FILENO) == STDIN_FILENO, "standard input can be replaced");
  ::close(ends[1]);
}

struct Line {
  std::string text; // empty where it is too long
  bool too_long = false;
  bool operator==(const Line &) const = default;
};

std::vector<Line> lines_of(BytesView text, std::size_t bytes_max) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const BytesView line = text.substr(0, text.find('\n'));
    const bool too_long = line.size() > bytes_max;
    lines.push_back({too_long ? std::string() : std::string(line), too_long});
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return lines;
}

void check_lines(BytesView text, std::size_t bytes_max, std::size_t piece_bytes, const tools::StopEvent &stop) {
  feed_standard_input(text, piece_bytes);
  const auto file = tools::InputFile::open("-");
  require(file.has_value(), "standard input can be opened");
  tools::LineReader reader(*file, bytes_max, stop, MonotonicTime::max());
  std::vector<Line> lines;
  for (;;) {
    const bool has_line = reader.has_line();
    std::string_view line;
    const auto end = reader.next(line);
    require(end.has_value() && *end != ReadEnd::interrupted, "the input can be read");
    require(!has_line || *end != ReadEnd::end, "a line that is in hand comes");
    if (*end == ReadEnd::end) break;
    const bool too_long = *end == ReadEnd::too_long;
    lines.push_back({too_long ? std::string() : std::string(line), too_long});
    require(reader.number() == lines.size(), "lines are counted");
  }
  require(lines == lines_of(text, bytes_max), "lines come out as they went in");
}

void check_rest(BytesView text, std::size_t bytes_max, std::size_t piece_bytes, const tools::StopEvent &stop) {
  feed_standard_input(text, piece_bytes);
  const auto file = tools::InputFile::open("-");
  require(file.has_value(), "standard input can be opened");
  tools::LineReader reader(*file, bytes_max, stop, MonotonicTime::max());
  std::string rest;
  const auto end = reader.rest(rest);
  require(end.has_value() && *end == ReadEnd::end, "the input can be read");
  require(rest == text.substr(0, bytes_max + 1), "the rest is the whole input and at most one byte beyond the limit");
}

void check_value(const Bytes &value) {
  JobParser parser;
  const auto canonical = parser.canonical(value);
  require(canonical || canonical.error() == JobDefect::duplicate_name,
          "a JSON value has a canonical form unless a name comes twice");
  const auto json = json_of_messagepack(value, Binaries::refused);
  require(json.has_value() == canonical.has_value(), "a value that came from JSON becomes JSON again");
  if (!json) return;
  Bytes again;
  require(messagepack_of_json(dump(*json), again).has_value(), "what we print we can read");
  require(again == value, "a value turned into JSON and back is the same");
}

// Whether every float of the value can have been written as one: with a point or an exponent after a digit.
bool has_no_rounded_integer(BytesView line, const Bytes &value) {
  std::vector<messagepack::Token> tokens;
  require(messagepack::tokenize(value, tokens, value.size()), "what becomes of JSON is one value");
  const auto floats = std::count_if(tokens.begin(), tokens.end(), [](const messagepack::Token &token) {
    return token.kind == messagepack::Kind::floating;
  });
  std::ptrdiff_t written = 0;
  for (std::size_t at = 1; at < line.size(); ++at) {
    if (line[at - 1] >= '0' && line[at - 1] <= '9' && std::string_view(".eE").find(line[at]) != BytesView::npos)
      ++written;
  }
  return floats <= written;
}

void check_json(BytesView line) {
  Bytes value;
  const auto read = messagepack_of_json(line, value);
  const bool is_json = nlohmann::json::accept(line);
  if (read) {
    require(is_json, "what is no JSON is refused");
    require(has_no_rounded_integer(line, value), "no integer becomes a float");
    return check_value(value);
  }
  require(!read.error().empty(), "a refusal says why");
  require(!is_json || read.error() == "number beyond 64 bits" || read.error() == name_of(JobDefect::too_deep),
          "JSON is refused only for a number or its depth");
}

} // namespace
} // namespace onced::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace onced::fuzz;
  static onced::tools::StopEvent stop; // never requested
  Script script(view_of(data, size));
  const std::size_t bytes_max = 1U + 16U * script.byte();
  const unsigned how = script.byte();
  const onced::BytesView text = script.rest();
  // Few pieces: the reader makes as much room for each as if it were large, which takes the time of everything else.
  const std::size_t piece_bytes = std::max<std::size_t>(how % 128U + 1, text.size() / 4 + 1);
  if (how < 128) {
    check_lines(text, bytes_max, piece_bytes, stop);
  } else {
    check_rest(text, bytes_max, piece_bytes, stop);
  }
  for (const Line &line : lines_of(text, bytes_max)) {
    if (!line.too_long) check_json(line.text);
  }
  return 0;
}
