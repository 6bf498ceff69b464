#include "admin/map_writer.hpp"

namespace onced::admin {

messagepack::Writer &MapWriter::entry(std::string_view name) {
  ++entries_;
  return writer_.string(name);
}

void MapWriter::text(std::string_view name, std::string_view value) {
  value.empty() ? entry(name).nil() : entry(name).string(value);
}

void MapWriter::time(std::string_view name, WallTime time) {
  number(name, static_cast<std::uint64_t>(time.time_since_epoch().count()));
}

Bytes MapWriter::bytes() const {
  Bytes out;
  messagepack::Writer(out).map(entries_).raw(body_);
  return out;
}

} // namespace onced::admin
