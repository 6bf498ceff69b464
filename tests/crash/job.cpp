#include "crash/job.hpp"

#include <array>
#include <cstdlib>
#include <stdexcept>

#include <msgpack.hpp>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>

namespace onced::crash {
namespace {

using Packer = msgpack::packer<msgpack::sbuffer>;

Bytes bytes_of(const msgpack::sbuffer &buffer) {
  return {buffer.data(), buffer.size()};
}

Bytes sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("no SHA-256");
  }
  return {digest.begin(), digest.end()};
}

Bytes with_length_byte(std::string_view text) {
  return Bytes(1, static_cast<char>(text.size())).append(text);
}

Bytes with_length(std::string_view text) {
  Bytes length;
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    length.push_back(static_cast<char>((text.size() >> shift) & 0xFFU));
  return length.append(text);
}

void pack_numbers(Packer &packer, const Job &job) {
  packer.pack("numbers").pack_array(static_cast<std::uint32_t>(job.numbers.size()));
  for (const std::int64_t number : job.numbers)
    packer.pack_int64(number);
}

// In canonical form: names in the order of their bytes.
Bytes payload_of(const Job &job) {
  msgpack::sbuffer buffer;
  Packer packer(buffer);
  packer.pack_map(job.unknown_field ? 2 : 1);
  if (job.unknown_field) packer.pack("extra").pack(true);
  pack_numbers(packer, job);
  return bytes_of(buffer);
}

} // namespace

std::string_view name_of(Reason reason) {
  return reason == Reason::conflict ? "conflict" : reason == Reason::invalid ? "invalid" : "failed";
}

std::string json_of(const Job &job, Notation notation) {
  nlohmann::ordered_json object;
  object["operation_id"] = job.operation_id;
  if (!job.effect_key.empty()) object["effect_key"] = job.effect_key;
  if (job.type != "sum") object["type"] = job.type;
  if (job.unknown_field) object["extra"] = true;
  object["numbers"] = nlohmann::ordered_json::array();
  for (const std::int64_t number : job.numbers) {
    constexpr std::int64_t exact_max = 1LL << 53;
    const bool as_float = notation == Notation::floats && number >= -exact_max && number <= exact_max;
    object["numbers"].push_back(as_float ? nlohmann::ordered_json(static_cast<double>(number))
                                         : nlohmann::ordered_json(number));
  }
  return object.dump();
}

Bytes messagepack_of(const Job &job) {
  msgpack::sbuffer buffer;
  Packer packer(buffer);
  packer.pack_map(job.effect_key.empty() ? 3 : 4);
  packer.pack("operation_id").pack(job.operation_id);
  packer.pack("type").pack(job.type);
  if (!job.effect_key.empty()) packer.pack("effect_key").pack(job.effect_key);
  pack_numbers(packer, job);
  return bytes_of(buffer);
}

Bytes messagepack_of(std::int64_t number) {
  msgpack::sbuffer buffer;
  Packer(buffer).pack_int64(number);
  return bytes_of(buffer);
}

Bytes key_of(std::string_view type, std::string_view operation_id, std::string_view effect_key) {
  if (!effect_key.empty()) return "\x02" + with_length_byte(effect_key);
  return "\x01" + with_length_byte(type) + with_length_byte(operation_id);
}

Bytes key_of(const Job &job) {
  return key_of(job.type, job.operation_id, job.effect_key);
}

Bytes digest_of(const Job &job) {
  return sha256("\x01" + with_length(job.type) + with_length(payload_of(job)));
}

std::optional<std::int64_t> sum_of(const Job &job) {
  std::int64_t sum = 0;
  for (const std::int64_t number : job.numbers) {
    if (__builtin_add_overflow(sum, number, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<Reason> refusal_of(const Job &job) {
  if (job.type != "sum" || job.unknown_field) return Reason::invalid;
  if (!sum_of(job)) return Reason::failed;
  return std::nullopt;
}

Bytes letter_id_of(const Job &job, Reason reason) {
  const Bytes intent = digest_of(job) + static_cast<char>(reason);
  return sha256(key_of(job)).substr(0, 8) + sha256(intent).substr(0, 8);
}

Bytes letter_id_of(std::string_view bytes) {
  return sha256(bytes).substr(0, 16);
}

std::string hex_of(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text.push_back(digits[value >> 4U]);
    text.push_back(digits[value & 0xFU]);
  }
  return text;
}

} // namespace onced::crash
