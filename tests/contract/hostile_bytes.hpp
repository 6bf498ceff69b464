#pragma once

#include <string>
#include <vector>

#include "onced/bytes.hpp"
#include "support/job_bytes.hpp"

// Bytes that are no valid job, each for another reason.
namespace onced::testing {

struct HostileBytes {
  std::string name; // for people
  Bytes bytes;
  std::string detail; // of the outcome when they are the job of a batch
};

// {"operation_id": "bad", "numbers": [1]} with these bytes, which are names and values, as further pairs.
inline Bytes job_and(const Bytes &pairs, std::size_t count) {
  Bytes out;
  messagepack::Writer writer(out);
  writer.map(2 + count).string("operation_id").string("bad").string("numbers").array(1).positive(1).raw(pairs);
  return out;
}

// A pair whose value is arrays inside each other, so many that the job nests `depth` deep.
inline Bytes nested_pair(std::size_t depth) {
  Bytes out;
  messagepack::Writer writer(out);
  writer.string("x");
  for (std::size_t level = 2; level < depth; ++level)
    writer.array(1);
  writer.array(0);
  return out;
}

inline std::vector<HostileBytes> hostile_bytes() {
  Bytes type;
  messagepack::Writer(type).string("type").string("no-such-type");
  Bytes field;
  messagepack::Writer(field).string("unit").string("EUR");
  Bytes twice;
  messagepack::Writer(twice).string("numbers").array(0);
  Bytes number_name;
  messagepack::Writer(number_name).positive(7).positive(7);
  Bytes bad_text;
  messagepack::Writer(bad_text).string("x").string("\xC3\x28");
  Bytes no_id;
  messagepack::Writer(no_id).map(1).string("numbers").array(0);
  Bytes text_number;
  messagepack::Writer(text_number).map(2).string("operation_id").string("bad").string("numbers").string("1");
  return {
      {"not-json", "not-json", "not_a_map"},
      {"empty", "", "malformed"},
      {"a length bomb of an array", Bytes("\xDD\xFF\xFF\xFF\xFF", 5), "not_a_map"},
      {"a length bomb of a map", Bytes("\xDF\xFF\xFF\xFF\xFF", 5), "malformed"},
      {"a length bomb of a string", Bytes("\xDB\xFF\xFF\xFF\xFF", 5), "malformed"},
      {"a length bomb of a binary", Bytes("\xC6\xFF\xFF\xFF\xFF", 5), "malformed"},
      {"depth 17", job_and(nested_pair(17), 1), "too_deep"},
      {"trailing bytes", job_bytes("bad", {1}) + Bytes("\0", 1), "trailing_bytes"},
      {"cut short", job_bytes("bad", {1, 2}).substr(0, 20), "malformed"},
      {"a duplicate name", job_and(twice, 1), "duplicate_name"},
      {"a name that is no string", job_and(number_name, 1), "name_not_a_string"},
      {"bad UTF-8", job_and(bad_text, 1), "invalid_utf8"},
      {"an unknown type", job_and(type, 1), ""},
      {"a field that sum does not know", job_and(field, 1), ""},
      {"numbers that are no array", text_number, ""},
      {"no operation id", no_id, "no_operation_id"},
      {"no map", Bytes("\x93\x01\x02\x03", 4), "not_a_map"},
  };
}

} // namespace onced::testing
