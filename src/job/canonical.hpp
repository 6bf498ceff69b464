#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/limits.hpp"

namespace onced {

// Writes the canonical form of values as they come, one after another, without building a tree of them. Its memory is
// reused. Maps are put in order when they end: until then each has a list of where its entries lie.
//
// The caller keeps maps balanced, at most limits::nesting_max of them open, and writes less than 4 GiB.
class CanonicalWriter {
public:
  // The most bytes that the head of a map takes.
  static constexpr std::size_t map_head_bytes_max = 5;

  // Forgets everything written. The first `skipped` bytes of the output are then left for a head that comes later.
  void restart(std::size_t skipped);

  [[nodiscard]] std::size_t size() const { return used_; }
  [[nodiscard]] BytesView from(std::size_t offset) const { return {buffer_.data() + offset, used_ - offset}; }
  // Takes back what was written from `size` on.
  void cut(std::size_t size) { used_ = size; }

  void nil() { head(0xC0); }
  void boolean(bool value) { head(value ? 0xC3 : 0xC2); }
  void positive(std::uint64_t value);
  // Any value, negative or not.
  void integer(std::int64_t value);
  // False, and nothing written, for NaN and the infinities.
  [[nodiscard]] bool floating(double value);
  void string(std::string_view value);
  void binary(BytesView value);
  void array_head(std::uint32_t elements) { container_head(0x90, 0xDC, elements); }
  void map_head(std::uint32_t pairs) { container_head(0x80, 0xDE, pairs); }
  // Writes the head of a map whose first entry lies at map_head_bytes_max, and returns where the head begins.
  [[nodiscard]] std::size_t map_head_in_front(std::uint32_t pairs);

  // The entries of a map, between begin_entries and end_entries: for each its name, a value, and end_value.
  void begin_entries() { maps_[open_maps_++] = {entries_.size(), {}, true}; }
  // The name's bytes must live until the map ends.
  void name(std::string_view value);
  void end_value() { entries_.back().end = static_cast<std::uint32_t>(used_); }
  // Puts the entries in order by the bytes of their names, and returns how many there are.
  std::uint32_t end_entries();

  // Whether a map that has ended had a name twice. What was written of that map is then of no use.
  [[nodiscard]] bool has_duplicate_names() const { return has_duplicate_names_; }

private:
  struct Entry {
    std::uint32_t begin;
    std::uint32_t end;
  };
  struct OpenMap {
    std::size_t first_entry;
    std::string_view last_name;
    bool ascending;
  };

  char *claim(std::size_t size) {
    if (buffer_.size() - used_ < size) grow(size);
    char *place = buffer_.data() + used_;
    used_ += size;
    return place;
  }
  void grow(std::size_t size);
  void head(unsigned byte) { *claim(1) = static_cast<char>(byte); }
  // A head followed by `Size` bytes of number, most significant first.
  template <std::size_t Size> void number(unsigned byte, std::uint64_t value);
  void container_head(unsigned short_form, unsigned form_16, std::uint32_t size);
  void body(std::string_view value);
  [[nodiscard]] std::string_view name_of(Entry entry) const;
  void put_in_order(std::size_t first_entry);

  std::vector<char> buffer_;
  std::size_t used_ = 0;
  std::vector<char> scratch_;
  std::vector<Entry> entries_; // of all open maps, the innermost one's last
  std::array<OpenMap, limits::nesting_max> maps_{};
  std::size_t open_maps_ = 0;
  bool has_duplicate_names_ = false;
};

// The string that `bytes`, which begin with a canonical value, begin with.
// Its data is null where that value is of another kind.
[[nodiscard]] std::string_view canonical_string_at(const char *bytes);

} // namespace onced
