#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "onced/bytes.hpp"

namespace onced {

// A job after parsing. It owns all its bytes. docs/protocol.md, "The job", describes its form. The limits are those of
// limits.hpp.
struct Job {
  std::string operation_id; // 1 to 255 bytes of UTF-8; opaque, compared byte by byte
  std::string type;         // 1 to 64 bytes of UTF-8; "sum" if the producer named none
  std::string effect_key;   // 1 to 255 bytes of UTF-8; empty: none
  std::string traceparent;  // W3C trace context; carried and never digested; empty: none
  Bytes payload;            // a map of all other fields, in canonical form
};

// Why bytes are no job. The names are part of the contract: dead letters, replies and the test vectors hold them. If
// several defects apply, tests/vectors/README.md says which one is named.
enum class JobDefect : std::uint8_t {
  malformed,         // not MessagePack, or cut short
  trailing_bytes,    // more bytes after the job
  too_large,         // longer than limits::job_bytes_max
  too_deep,          // nesting beyond limits::nesting_max
  not_a_map,         // the bytes are MessagePack, and no map
  name_not_a_string, // a name in a map is no string, at any depth
  duplicate_name,    // a map has a name twice, at any depth
  invalid_utf8,      // a string is no UTF-8
  not_finite,        // a float is NaN or an infinity
  extension_type,    // a MessagePack ext value, which has no canonical form
  no_operation_id,   // there is no `operation_id`
  bad_operation_id,  // `operation_id` is no string of 1 to 255 bytes
  bad_type,          // `type` is no string of 1 to 64 bytes
  bad_effect_key,    // `effect_key` is no string of 1 to 255 bytes
  bad_traceparent,   // `traceparent` is no string of at most 255 bytes
};

// The names, in the order of the enumeration. They never change.
inline constexpr std::array<std::string_view, 15> job_defect_names{
    "malformed",         "trailing_bytes",   "too_large",    "too_deep",       "not_a_map",
    "name_not_a_string", "duplicate_name",   "invalid_utf8", "not_finite",     "extension_type",
    "no_operation_id",   "bad_operation_id", "bad_type",     "bad_effect_key", "bad_traceparent",
};

// Returns the name of a defect, a literal. Any thread.
[[nodiscard]] constexpr std::string_view name_of(JobDefect defect) {
  return job_defect_names[static_cast<std::size_t>(defect)];
}

// Parses jobs one after another. It keeps its buffers between them, so that parsing rarely allocates. One thread at a
// time may use a parser. A parser that was moved from may only be assigned to or destroyed.
class JobParser {
public:
  JobParser();
  ~JobParser();
  JobParser(JobParser &&) noexcept;
  JobParser &operator=(JobParser &&) noexcept;

  // Reads the MessagePack bytes of one job into `job`, whose memory it reuses. `job` owns what it gets; `bytes` need
  // only live during the call. After a defect the content of `job` is unspecified. Any bytes are safe, and memory stays
  // within a small multiple of their length.
  [[nodiscard]] tl::expected<void, JobDefect> parse(BytesView bytes, Job &job);

  // Returns the canonical form of one MessagePack value of any kind, as in `Job::payload` and in results. The view
  // belongs to the parser and is valid until the next call of either function. limits::job_bytes_max is not applied.
  // Errors: the defects of a value (malformed … extension_type), without those of a job.
  [[nodiscard]] tl::expected<BytesView, JobDefect> canonical(BytesView value);

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
