#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/messagepack.hpp"
#include "onced/clock.hpp"

namespace onced::admin {

// Writes one MessagePack map, entry by entry, and counts its entries by itself.
class MapWriter {
public:
  MapWriter() = default;
  MapWriter(const MapWriter &) = delete;
  MapWriter &operator=(const MapWriter &) = delete;

  // Begins an entry. The caller writes exactly one value.
  messagepack::Writer &entry(std::string_view name);

  void string(std::string_view name, std::string_view value) { entry(name).string(value); }
  // Nil where the value is empty.
  void text(std::string_view name, std::string_view value);
  void binary(std::string_view name, BytesView value) { entry(name).binary(value); }
  void number(std::string_view name, std::uint64_t value) { entry(name).positive(value); }
  void boolean(std::string_view name, bool value) { entry(name).boolean(value); }
  void time(std::string_view name, WallTime time);
  void map(std::string_view name, const MapWriter &inner) { entry(name).raw(inner.bytes()); }
  // An array of maps: `fill(map, row)` writes the entries of each.
  template <class Rows, class Fill> void maps(std::string_view name, const Rows &rows, Fill fill) {
    messagepack::Writer &array = entry(name).array(rows.size());
    for (const auto &row : rows) {
      MapWriter inner;
      fill(inner, row);
      array.raw(inner.bytes());
    }
  }

  // The whole map, as far as it is written.
  [[nodiscard]] Bytes bytes() const;

private:
  std::size_t entries_ = 0;
  Bytes body_; // the entries without the head of the map
  messagepack::Writer writer_{body_};
};

} // namespace onced::admin
