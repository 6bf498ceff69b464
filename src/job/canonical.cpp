#include "job/canonical.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace onced {
namespace {

// Every integer from -2^53 to 2^53 is a double, so a float in this range and the equal integer are one number.
constexpr double exact_integer_max = 9'007'199'254'740'992.0;

std::size_t big_endian(const char *bytes, std::size_t size) {
  std::size_t value = 0;
  for (std::size_t at = 0; at < size; ++at) {
    value = value << 8U | static_cast<unsigned char>(bytes[at]);
  }
  return value;
}

} // namespace

void CanonicalWriter::restart(std::size_t skipped) {
  used_ = 0;
  entries_.clear();
  open_maps_ = 0;
  has_duplicate_names_ = false;
  claim(skipped);
}

void CanonicalWriter::grow(std::size_t size) {
  buffer_.resize(std::max<std::size_t>(2 * buffer_.size(), used_ + size + 256));
}

template <std::size_t Size> void CanonicalWriter::number(unsigned byte, std::uint64_t value) {
  char *place = claim(1 + Size);
  place[0] = static_cast<char>(byte);
  for (std::size_t at = 0; at < Size; ++at) {
    place[1 + at] = static_cast<char>(value >> (8 * (Size - 1 - at)) & 0xFFU);
  }
}

void CanonicalWriter::positive(std::uint64_t value) {
  if (value <= 0x7F) return head(static_cast<unsigned>(value));
  if (value <= 0xFF) return number<1>(0xCC, value);
  if (value <= 0xFFFF) return number<2>(0xCD, value);
  if (value <= 0xFFFFFFFF) return number<4>(0xCE, value);
  number<8>(0xCF, value);
}

void CanonicalWriter::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0) return positive(bits);
  if (value >= -32) return head(static_cast<unsigned>(bits & 0xFFU));
  if (value >= INT8_MIN) return number<1>(0xD0, bits);
  if (value >= INT16_MIN) return number<2>(0xD1, bits);
  if (value >= INT32_MIN) return number<4>(0xD2, bits);
  number<8>(0xD3, bits);
}

bool CanonicalWriter::floating(double value) {
  if (!std::isfinite(value)) return false;
  if (std::fabs(value) <= exact_integer_max && value == std::trunc(value)) {
    integer(static_cast<std::int64_t>(value));
  } else {
    number<8>(0xCB, std::bit_cast<std::uint64_t>(value));
  }
  return true;
}

void CanonicalWriter::body(std::string_view value) {
  if (!value.empty()) std::memcpy(claim(value.size()), value.data(), value.size());
}

void CanonicalWriter::string(std::string_view value) {
  if (value.size() <= 31) {
    head(0xA0U | static_cast<unsigned>(value.size()));
  } else if (value.size() <= 0xFF) {
    number<1>(0xD9, value.size());
  } else if (value.size() <= 0xFFFF) {
    number<2>(0xDA, value.size());
  } else {
    number<4>(0xDB, value.size());
  }
  body(value);
}

void CanonicalWriter::binary(BytesView value) {
  if (value.size() <= 0xFF) {
    number<1>(0xC4, value.size());
  } else if (value.size() <= 0xFFFF) {
    number<2>(0xC5, value.size());
  } else {
    number<4>(0xC6, value.size());
  }
  body(value);
}

void CanonicalWriter::container_head(unsigned short_form, unsigned form_16, std::uint32_t size) {
  if (size <= 15) return head(short_form | size);
  if (size <= 0xFFFF) return number<2>(form_16, size);
  number<4>(form_16 + 1, size);
}

std::size_t CanonicalWriter::map_head_in_front(std::uint32_t pairs) {
  const std::size_t head_bytes = pairs <= 15 ? 1 : pairs <= 0xFFFF ? 3 : map_head_bytes_max;
  const std::size_t begin = map_head_bytes_max - head_bytes;
  const std::size_t end = std::exchange(used_, begin);
  map_head(pairs);
  used_ = end;
  return begin;
}

void CanonicalWriter::name(std::string_view value) {
  OpenMap &map = maps_[open_maps_ - 1];
  if (entries_.size() > map.first_entry && !(map.last_name < value)) map.ascending = false;
  map.last_name = value;
  const auto begin = static_cast<std::uint32_t>(used_);
  entries_.push_back({begin, begin});
  string(value);
}

std::uint32_t CanonicalWriter::end_entries() {
  const OpenMap &map = maps_[--open_maps_];
  const std::size_t count = entries_.size() - map.first_entry;
  if (!map.ascending) put_in_order(map.first_entry);
  entries_.resize(map.first_entry);
  return static_cast<std::uint32_t>(count);
}

std::string_view CanonicalWriter::name_of(Entry entry) const {
  return canonical_string_at(buffer_.data() + entry.begin);
}

void CanonicalWriter::put_in_order(std::size_t first_entry) {
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(first_entry);
  const std::size_t begin = first->begin;
  std::sort(first, entries_.end(), [this](Entry left, Entry right) { return name_of(left) < name_of(right); });
  const auto twice = std::adjacent_find(first, entries_.end(),
                                        [this](Entry left, Entry right) { return name_of(left) == name_of(right); });
  if (twice != entries_.end()) has_duplicate_names_ = true;

  if (scratch_.size() < used_ - begin) scratch_.resize(buffer_.size());
  char *place = scratch_.data();
  for (auto entry = first; entry != entries_.end(); ++entry) {
    place = std::copy(buffer_.data() + entry->begin, buffer_.data() + entry->end, place);
  }
  std::copy(scratch_.data(), place, buffer_.data() + begin);
}

std::string_view canonical_string_at(const char *bytes) {
  const auto head = static_cast<unsigned char>(bytes[0]);
  if (head >= 0xA0 && head <= 0xBF) return {bytes + 1, head & 0x1FU};
  if (head == 0xD9) return {bytes + 2, big_endian(bytes + 1, 1)};
  if (head == 0xDA) return {bytes + 3, big_endian(bytes + 1, 2)};
  if (head == 0xDB) return {bytes + 5, big_endian(bytes + 1, 4)};
  return {};
}

} // namespace onced
