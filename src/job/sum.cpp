#include <cmath>
#include <optional>
#include <string>

#include <msgpack.hpp>

#include "base/messagepack.hpp"
#include "job/exact_sum.hpp"
#include "onced/handler.hpp"
#include "onced/limits.hpp"

namespace onced {
namespace {

// Adds up numbers of both kinds. The wide accumulator is there only once something needs it.
class Sum {
public:
  void add(std::int64_t value) {
    std::int64_t next = 0;
    if (__builtin_add_overflow(total_, value, &next)) {
      wide().add(value);
    } else {
      total_ = next;
    }
  }
  void add(std::uint64_t value) {
    if (value <= INT64_MAX) return add(static_cast<std::int64_t>(value));
    wide().add(value);
  }
  // False for NaN and the infinities.
  [[nodiscard]] bool add(double value) {
    if (!std::isfinite(value)) return false;
    has_floats_ = true;
    wide().add(value);
    return true;
  }

  [[nodiscard]] HandlerResult result();

private:
  ExactSum &wide() {
    if (!wide_) wide_.emplace();
    return *wide_;
  }

  std::int64_t total_ = 0;
  std::optional<ExactSum> wide_;
  bool has_floats_ = false;
};

HandlerResult Sum::result() {
  Bytes bytes;
  messagepack::Writer writer(bytes);
  if (!wide_) {
    writer.integer(total_);
    return Done{bytes};
  }
  wide_->add(total_);
  if (has_floats_) {
    const double sum = wide_->rounded();
    if (!std::isfinite(sum)) return Failed{"overflow: the sum is beyond the largest 64-bit float"};
    writer.floating(sum);
    return Done{bytes};
  }
  const auto sum = wide_->integer();
  if (!sum) return Failed{"overflow: the sum of the integers is beyond 64 bits with sign"};
  writer.integer(*sum);
  return Done{bytes};
}

// Follows a payload as far as it is {"numbers": [integers and floats]}.
class NumbersVisitor final : public msgpack::null_visitor {
public:
  explicit NumbersVisitor(Sum &sum) : sum_(sum) {}

  bool visit_nil() { return other(); }
  bool visit_boolean(bool) { return other(); }
  bool visit_positive_integer(std::uint64_t value) { return in_array() && (sum_.add(value), true); }
  bool visit_negative_integer(std::int64_t value) { return in_array() && (sum_.add(value), true); }
  bool visit_float32(float value) { return visit_float64(static_cast<double>(value)); }
  bool visit_float64(double value) { return in_array() && (sum_.add(value) || other()); }
  bool visit_str(const char *data, std::uint32_t size);
  bool visit_bin(const char *, std::uint32_t) { return other(); }
  bool visit_ext(const char *, std::uint32_t) { return other(); }
  bool start_array(std::uint32_t size);
  bool end_array() {
    place_ = Place::name;
    return true;
  }
  bool start_map(std::uint32_t pairs);

  [[nodiscard]] const std::string &refusal() const { return refusal_; }

private:
  enum class Place : std::uint8_t { payload, name, numbers, element };

  bool refuse(std::string detail) {
    refusal_ = std::move(detail);
    return false;
  }
  bool in_array() { return place_ == Place::element || other(); }
  bool other();

  Sum &sum_;
  Place place_ = Place::payload;
  std::string refusal_;
};

// A value of a kind that may not stand here.
bool NumbersVisitor::other() {
  switch (place_) {
  case Place::payload:
  case Place::name:
    return refuse("the payload is no map of named fields");
  case Place::numbers:
    return refuse("\"numbers\" is no array");
  case Place::element:
    return refuse("\"numbers\" holds something that is neither an integer nor a finite float");
  }
  return refuse("the payload is of no known form");
}

bool NumbersVisitor::visit_str(const char *data, std::uint32_t size) {
  if (place_ != Place::name) return other();
  const std::string_view name(data, size);
  if (name != "numbers") return refuse("sum knows no field \"" + std::string(name.substr(0, 128)) + "\"");
  place_ = Place::numbers;
  return true;
}

bool NumbersVisitor::start_array(std::uint32_t size) {
  if (place_ != Place::numbers) return other();
  if (size > limits::sum_numbers_max) {
    return refuse("\"numbers\" has " + std::to_string(size) + " elements, more than " +
                  std::to_string(limits::sum_numbers_max));
  }
  place_ = Place::element;
  return true;
}

bool NumbersVisitor::start_map(std::uint32_t pairs) {
  if (place_ != Place::payload) return other();
  if (pairs == 0) return refuse("the field \"numbers\" is missing");
  place_ = Place::name;
  return true;
}

} // namespace

HandlerResult sum_handler(const HandlerCall &call) {
  Sum sum;
  NumbersVisitor visitor(sum);
  std::size_t offset = 0;
  if (!msgpack::parse(call.payload.data(), call.payload.size(), offset, visitor) || offset != call.payload.size()) {
    return Invalid{visitor.refusal().empty() ? "the payload is no MessagePack" : visitor.refusal()};
  }
  return sum.result();
}

} // namespace onced
