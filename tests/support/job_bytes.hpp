#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/messagepack.hpp"
#include "onced/bytes.hpp"

// The MessagePack bytes of jobs, as a producer would write them.
namespace onced::testing {

struct JobFields {
  std::string_view operation_id;
  std::vector<std::int64_t> numbers;
  std::string_view type = {};       // empty: the field is left out
  std::string_view effect_key = {}; // empty: the field is left out
};

[[nodiscard]] inline Bytes job_bytes(const JobFields &fields) {
  Bytes out;
  messagepack::Writer writer(out);
  writer.map(2U + (fields.type.empty() ? 0U : 1U) + (fields.effect_key.empty() ? 0U : 1U));
  writer.string("operation_id").string(fields.operation_id);
  writer.string("numbers").array(fields.numbers.size());
  for (const std::int64_t number : fields.numbers)
    writer.integer(number);
  if (!fields.type.empty()) writer.string("type").string(fields.type);
  if (!fields.effect_key.empty()) writer.string("effect_key").string(fields.effect_key);
  return out;
}

[[nodiscard]] inline Bytes job_bytes(std::string_view operation_id, std::vector<std::int64_t> numbers) {
  return job_bytes(JobFields{.operation_id = operation_id, .numbers = std::move(numbers)});
}

// The canonical result that is this integer.
[[nodiscard]] inline Bytes integer_result(std::int64_t value) {
  Bytes out;
  messagepack::Writer(out).integer(value);
  return out;
}

} // namespace onced::testing
