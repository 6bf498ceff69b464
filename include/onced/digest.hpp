#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "onced/bytes.hpp"
#include "onced/ids.hpp"
#include "onced/job.hpp"

namespace onced {

// The version of the canonical form. It is digested, so another form can never meet this one's digests.
inline constexpr std::uint8_t canonical_form_version = 1;

// What "the same job" means: the bytes under which a result is stored, of which the store holds at most one row.
// An effect key alone when the job has one, else type and operation id; tagged and length-prefixed (docs/storage.md),
// so two different keys never meet, whatever the ids contain.
struct Key {
  Bytes bytes;
  auto operator<=>(const Key &) const = default;
};

// The same, for whoever reads a record of a rehearsal.
inline constexpr std::string_view key_definition =
    "a tag, then the effect key where the job has one, else type and operation id, each length-prefixed; "
    "compared byte by byte";

// Writes the job's key into `key`, reusing its memory. The job must have come from a parser.
void assign_key(const Job &job, Key &key);

// The keys behind the two ways to ask for a row. The lengths must be within limits.hpp.
[[nodiscard]] Key key_of_operation(std::string_view type, std::string_view operation_id);
[[nodiscard]] Key key_of_effect(std::string_view effect_key);

// What a key is made of, as views into its bytes: an effect key alone, or type and operation id.
struct KeyParts {
  std::string_view type;
  std::string_view operation_id;
  std::string_view effect_key;
};
// Nothing where the bytes are those of no key.
[[nodiscard]] std::optional<KeyParts> parts_of_key(BytesView key);

// What the handlers of a queued job and their provider call its key by: SHA-256 of it, 64 hexadecimal digits.
[[nodiscard]] std::string idempotency_key_of(BytesView key);

// What a sender is called wherever its id is not to be known: 8 hexadecimal digits of SHA-256 of the id. Who knows the
// id can take its replies away. Empty: no sender was named.
[[nodiscard]] std::string handle_of(const SenderId &sender);

// What "the same payload" means, for the same reader; `Digester::intent` makes it.
inline constexpr std::string_view digest_definition = "SHA-256 over the version of the canonical form, type and "
                                                      "canonical payload, length-prefixed; not over ids, attempts, "
                                                      "times or trace context";

// SHA-256 through OpenSSL with one context reused. One thread at a time. The constructor throws std::runtime_error
// where OpenSSL has no SHA-256 (a broken installation).
class Digester {
public:
  Digester();
  ~Digester();
  Digester(Digester &&) noexcept;
  Digester &operator=(Digester &&) noexcept;

  // The digest of an intent: canonical form version, type and canonical payload, length-prefixed. Not of ids, attempts,
  // times or trace context, which differ between deliveries of one intent.
  [[nodiscard]] Digest intent(std::string_view type, BytesView canonical_payload);

  // Plain SHA-256.
  [[nodiscard]] Digest plain(BytesView bytes);

  // The first 8 bytes of plain SHA-256.
  [[nodiscard]] Tag tag(BytesView job);

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
