#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A job as its producer knows it, and what the documents say of it: docs/protocol.md, docs/storage.md and
// tests/vectors/README.md, written down a second time and without the product's code.
namespace onced::crash {

using Bytes = std::string;

// Codes of docs/protocol.md.
enum class Reason : std::uint8_t { conflict = 2, invalid = 3, failed = 4 };
[[nodiscard]] std::string_view name_of(Reason reason);

struct Job {
  std::string operation_id;
  std::string effect_key{}; // empty: none
  std::string type = "sum";
  std::vector<std::int64_t> numbers{};
  bool unknown_field = false; // beside `numbers`, which `sum` refuses
};

// Integers as they are, or as floats where those are the same number.
enum class Notation : std::uint8_t { integers, floats };

[[nodiscard]] std::string json_of(const Job &job, Notation notation);
[[nodiscard]] Bytes messagepack_of(const Job &job);
[[nodiscard]] Bytes messagepack_of(std::int64_t number);

// The key of a type, operation id and effect key (empty: none).
[[nodiscard]] Bytes key_of(std::string_view type, std::string_view operation_id, std::string_view effect_key);
[[nodiscard]] Bytes key_of(const Job &job);
[[nodiscard]] Bytes digest_of(const Job &job);

// The sum; none where it is beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> sum_of(const Job &job);
// Why a worker refuses it although its key is absent; none: it is stored.
[[nodiscard]] std::optional<Reason> refusal_of(const Job &job);

[[nodiscard]] Bytes letter_id_of(const Job &job, Reason reason);
// Of bytes that are no job.
[[nodiscard]] Bytes letter_id_of(std::string_view bytes);

[[nodiscard]] std::string hex_of(std::string_view bytes);

} // namespace onced::crash
