#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "onced/bytes.hpp"
#include "onced/ids.hpp"
#include "onced/job.hpp"

namespace onced {

// The version of the canonical form. The digest covers it, so the digests of two forms never meet.
inline constexpr std::uint8_t canonical_form_version = 1;

// What "the same job" means: the bytes under which the store keeps at most one row. The key is made of the effect key
// if the job has one, else of type and operation id. A tag and lengths come before them (docs/storage.md), so two
// different keys never meet, whatever bytes the ids hold. A key owns its bytes and compares byte by byte.
struct Key {
  Bytes bytes;
  auto operator<=>(const Key &) const = default;
};

// What a key is, in words for the reader of a rehearsal's record.
inline constexpr std::string_view key_definition =
    "a tag, then the effect key where the job has one, else type and operation id, each length-prefixed; "
    "compared byte by byte";

// Writes the key of the job into `key`, whose memory it reuses. The job must have come from a parser, which has checked
// the lengths of its ids. Any thread; it does not fail.
void assign_key(const Job &job, Key &key);

// Return the key of an operation or of an effect, to ask for its row. The lengths must be within limits.hpp, which the
// caller checks. Any thread.
[[nodiscard]] Key key_of_operation(std::string_view type, std::string_view operation_id);
[[nodiscard]] Key key_of_effect(std::string_view effect_key);

// What a key is made of: an effect key alone, or type and operation id. The other views are empty. The views point into
// the bytes of the key and are valid as long as those.
struct KeyParts {
  std::string_view type;
  std::string_view operation_id;
  std::string_view effect_key;
};
// Takes a key apart. Returns nothing if the bytes are no key. Any bytes are safe. Any thread.
[[nodiscard]] std::optional<KeyParts> parts_of_key(BytesView key);

// Returns what a queued handler and its provider call a key: SHA-256 of it, 64 hexadecimal digits. Any thread.
[[nodiscard]] std::string idempotency_key_of(BytesView key);

// Returns the handle of a sender: the first 8 hexadecimal digits of SHA-256 of its id. Logs and answers show it in
// place of the id, since anyone who knows the id can take the replies away. It is empty for the id of all zeros. Any
// thread.
[[nodiscard]] std::string handle_of(const SenderId &sender);

// What a digest is, in words for the reader of a rehearsal's record; `Digester::intent` makes it.
inline constexpr std::string_view digest_definition = "SHA-256 over the version of the canonical form, type and "
                                                      "canonical payload, length-prefixed; not over ids, attempts, "
                                                      "times or trace context";

// SHA-256 by OpenSSL, with one context that is used again and again. One thread at a time may use a digester; each
// thread has its own. A digester that was moved from may only be assigned to or destroyed. The constructor throws
// std::runtime_error if OpenSSL has no SHA-256 (a broken installation); no other call fails.
class Digester {
public:
  Digester();
  ~Digester();
  Digester(Digester &&) noexcept;
  Digester &operator=(Digester &&) noexcept;

  // Returns the digest of an intent: the version of the canonical form, the type and the canonical payload, each
  // length-prefixed. Ids, attempts, times and trace context are left out, because they differ between deliveries of one
  // intent. `canonical_payload` must be in canonical form (`Job::payload`).
  [[nodiscard]] Digest intent(std::string_view type, BytesView canonical_payload);

  // Returns SHA-256 of the bytes.
  [[nodiscard]] Digest plain(BytesView bytes);

  // Returns the tag of a job: the first 8 bytes of SHA-256 of its bytes as they are sent.
  [[nodiscard]] Tag tag(BytesView job);

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
