#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "base/messagepack.hpp"
#include "onced/ids.hpp"
#include "onced/job.hpp"

// What the tests of this layer share: short ways to write bytes and jobs.
namespace onced::testing {

// Bytes from hexadecimal.
inline Bytes hex(std::string_view digits) {
  const auto bytes = from_hex(digits);
  REQUIRE(bytes.has_value());
  return *bytes;
}

// A MessagePack map whose values are given as MessagePack bytes. Nothing is sorted or checked.
inline Bytes map_of(std::initializer_list<std::pair<std::string_view, Bytes>> fields) {
  Bytes bytes;
  messagepack::Writer writer(bytes);
  writer.map(fields.size());
  for (const auto &[name, value] : fields) {
    writer.string(name).raw(value);
  }
  return bytes;
}

inline Bytes text(std::string_view value) {
  Bytes bytes;
  messagepack::Writer(bytes).string(value);
  return bytes;
}

inline Bytes integer(std::int64_t value) {
  Bytes bytes;
  messagepack::Writer(bytes).integer(value);
  return bytes;
}

inline Bytes floating(double value) {
  Bytes bytes;
  messagepack::Writer(bytes).floating(value);
  return bytes;
}

// A job "demo-1" with one payload field "value".
inline Bytes job_with(const Bytes &value) {
  return map_of({{"operation_id", text("demo-1")}, {"value", value}});
}

// `levels` arrays, one in another.
inline Bytes nested_arrays(std::size_t levels) {
  return Bytes(levels - 1, '\x91') + '\x90';
}

// The name of the defect for which `bytes` are no job; "accepted" where they are one.
inline std::string_view verdict(BytesView bytes) {
  JobParser parser;
  Job job;
  const auto parsed = parser.parse(bytes, job);
  return parsed ? "accepted" : name_of(parsed.error());
}

// The canonical form of one value in hexadecimal, or the name of its defect.
inline std::string canonical_hex(BytesView value) {
  JobParser parser;
  const auto form = parser.canonical(value);
  return form ? to_hex(*form) : std::string(name_of(form.error()));
}

} // namespace onced::testing
