#include "base/json_reader.hpp"

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/messagepack.hpp"
#include "onced/job.hpp"
#include "onced/limits.hpp"

namespace onced {
namespace {

// Takes the JSON parser's events and writes MessagePack as they come, so that no tree is built. The size of a container
// is known only at its end: its head is one byte at first, and grows then if it must.
class Transcoder final : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit Transcoder(Bytes &out) : out_(out), writer_(out) {}

  [[nodiscard]] const std::string &refusal() const { return refusal_; }

  bool null() override {
    count_element();
    writer_.nil();
    return true;
  }
  bool boolean(bool value) override {
    count_element();
    writer_.boolean(value);
    return true;
  }
  bool number_integer(std::int64_t value) override {
    count_element();
    writer_.integer(value);
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    count_element();
    writer_.positive(value);
    return true;
  }
  // The parser falls back to a double for integers beyond 64 bits; only the literal tells.
  bool number_float(double value, const std::string &literal) override {
    if (literal.find_first_of(".eE") == std::string::npos) return refuse("number beyond 64 bits");
    count_element();
    writer_.floating(value);
    return true;
  }
  bool string(std::string &value) override {
    count_element();
    writer_.string(value);
    return true;
  }
  bool binary(nlohmann::json::binary_t &) override { return refuse("JSON has no binaries"); }

  bool start_object(std::size_t) override { return open(true); }
  bool key(std::string &name) override {
    ++open_.back().size;
    writer_.string(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string &, const nlohmann::json::exception &exception) override {
    constexpr int out_of_range_number = 406;
    if (exception.id == out_of_range_number) return refuse("number beyond the range of a double");
    return refuse("not JSON at byte " + std::to_string(position));
  }

private:
  struct Container {
    std::size_t head; // where its first byte is
    std::size_t size;
    bool is_map;
  };

  bool refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

  void count_element() {
    if (!open_.empty() && !open_.back().is_map) ++open_.back().size;
  }

  bool open(bool is_map) {
    if (open_.size() == limits::nesting_max) return refuse(std::string(name_of(JobDefect::too_deep)));
    count_element();
    open_.push_back({out_.size(), 0, is_map});
    out_.push_back('\0');
    return true;
  }

  bool close() {
    const Container container = open_.back();
    open_.pop_back();
    head_.clear();
    messagepack::Writer head(head_);
    if (container.is_map) {
      head.map(container.size);
    } else {
      head.array(container.size);
    }
    out_.replace(container.head, 1, head_);
    return true;
  }

  Bytes &out_;
  messagepack::Writer writer_;
  std::vector<Container> open_;
  Bytes head_;
  std::string refusal_;
};

} // namespace

tl::expected<void, std::string> messagepack_of_json(std::string_view json, Bytes &out) {
  out.clear();
  Transcoder transcoder(out);
  if (nlohmann::json::sax_parse(json.begin(), json.end(), &transcoder)) return {};
  return tl::unexpected(transcoder.refusal());
}

} // namespace onced
