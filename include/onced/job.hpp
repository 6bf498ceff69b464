#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "onced/bytes.hpp"

namespace onced {

// A job after parsing. docs/protocol.md, "The job", is the reference of its form.
struct Job {
  std::string operation_id; // 1 to 255 bytes of UTF-8, opaque
  std::string type;         // 1 to 64 bytes of UTF-8; "sum" when the producer named none
  std::string effect_key;   // 1 to 255 bytes of UTF-8; empty: none
  std::string traceparent;  // W3C trace context, carried and never digested; empty: none
  Bytes payload;            // every other field, in canonical form
};

// Why bytes are no job. The names are part of the contract: they are in dead letters, replies and the test vectors.
enum class JobDefect : std::uint8_t {
  malformed,         // not MessagePack, or cut short
  trailing_bytes,    // more bytes after the job
  too_large,         // longer than limits::job_bytes_max
  too_deep,          // nesting beyond limits::nesting_max
  not_a_map,         // a job is a map
  name_not_a_string, // a map's name is no string
  duplicate_name,    // a map has a name twice, at any depth
  invalid_utf8,      // a string is no UTF-8
  not_finite,        // NaN or an infinity
  extension_type,    // MessagePack ext types have no canonical form
  no_operation_id,   // the field is missing
  bad_operation_id,  // no string of 1 to 255 bytes
  bad_type,          // no string of 1 to 64 bytes
  bad_effect_key,    // no string of 1 to 255 bytes
  bad_traceparent,   // no string of at most 255 bytes
};

inline constexpr std::array<std::string_view, 15> job_defect_names{
    "malformed",         "trailing_bytes",   "too_large",    "too_deep",       "not_a_map",
    "name_not_a_string", "duplicate_name",   "invalid_utf8", "not_finite",     "extension_type",
    "no_operation_id",   "bad_operation_id", "bad_type",     "bad_effect_key", "bad_traceparent",
};

[[nodiscard]] constexpr std::string_view name_of(JobDefect defect) {
  return job_defect_names[static_cast<std::size_t>(defect)];
}

// Parses jobs one after another and keeps its buffers between them. One thread at a time.
class JobParser {
public:
  JobParser();
  ~JobParser();
  JobParser(JobParser &&) noexcept;
  JobParser &operator=(JobParser &&) noexcept;

  // Reads the MessagePack bytes of one job into `job`, reusing its memory. After a defect `job` is unspecified.
  // Any bytes whatever are safe; memory stays within a small multiple of their length.
  [[nodiscard]] tl::expected<void, JobDefect> parse(BytesView bytes, Job &job);

  // The canonical form of one MessagePack value of any kind, as it is written in `Job::payload` and in results.
  // The view is valid until the next call. Does not apply limits::job_bytes_max.
  [[nodiscard]] tl::expected<BytesView, JobDefect> canonical(BytesView value);

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
