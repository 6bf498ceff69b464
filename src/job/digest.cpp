#include "onced/digest.hpp"

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <openssl/evp.h>

#include "base/check.hpp"
#include "base/utf8.hpp"
#include "onced/limits.hpp"

namespace onced {
namespace {

// The tags of the two kinds of key (docs/storage.md).
constexpr char operation_tag = '\x01';
constexpr char effect_tag = '\x02';

void append_prefixed(Bytes &out, std::string_view part) {
  out += static_cast<char>(part.size());
  out += part;
}

void assign_operation(std::string_view type, std::string_view operation_id, Bytes &out) {
  ONCED_CHECK(!type.empty() && type.size() <= limits::type_bytes_max);
  ONCED_CHECK(!operation_id.empty() && operation_id.size() <= limits::operation_id_bytes_max);
  out.assign(1, operation_tag);
  append_prefixed(out, type);
  append_prefixed(out, operation_id);
}

void assign_effect(std::string_view effect_key, Bytes &out) {
  ONCED_CHECK(!effect_key.empty() && effect_key.size() <= limits::effect_key_bytes_max);
  out.assign(1, effect_tag);
  append_prefixed(out, effect_key);
}

// The next part of a key, taken off it; empty where there is none.
std::string_view take_prefixed(BytesView &key) {
  const std::size_t size = key.empty() ? 0 : static_cast<unsigned char>(key.front());
  if (size == 0 || key.size() <= size || !utf8::valid(key.substr(1, size))) return {};
  const std::string_view part = key.substr(1, size);
  key.remove_prefix(1 + size);
  return part;
}

// Gathers small pieces, since each call into OpenSSL costs as much as hashing a few dozen bytes.
class Pieces {
public:
  void add(std::string_view piece) {
    std::memcpy(bytes_.data() + used_, piece.data(), piece.size());
    used_ += piece.size();
  }
  void add_length(std::size_t size) {
    for (unsigned shift = 32; shift > 0; shift -= 8) {
      bytes_[used_++] = static_cast<char>(size >> (shift - 8) & 0xFFU);
    }
  }
  [[nodiscard]] std::size_t room() const { return bytes_.size() - used_; }
  [[nodiscard]] BytesView view() const { return {bytes_.data(), used_}; }

private:
  std::array<char, 512> bytes_; // not cleared: only what was added is read
  std::size_t used_ = 0;
};

} // namespace

void assign_key(const Job &job, Key &key) {
  if (job.effect_key.empty()) {
    assign_operation(job.type, job.operation_id, key.bytes);
  } else {
    assign_effect(job.effect_key, key.bytes);
  }
}

Key key_of_operation(std::string_view type, std::string_view operation_id) {
  Key key;
  assign_operation(type, operation_id, key.bytes);
  return key;
}

Key key_of_effect(std::string_view effect_key) {
  Key key;
  assign_effect(effect_key, key.bytes);
  return key;
}

std::optional<KeyParts> parts_of_key(BytesView key) {
  if (key.empty()) return std::nullopt;
  const char tag = key.front();
  key.remove_prefix(1);
  KeyParts parts;
  if (tag == effect_tag) {
    parts.effect_key = take_prefixed(key);
  } else if (tag == operation_tag) {
    parts.type = take_prefixed(key);
    parts.operation_id = take_prefixed(key);
  }
  const bool complete = !parts.effect_key.empty() || (!parts.type.empty() && !parts.operation_id.empty());
  if (!complete || !key.empty() || parts.type.size() > limits::type_bytes_max) return std::nullopt;
  return parts;
}

class Digester::Impl {
public:
  Impl() : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
    if (!algorithm_ || !context_) throw std::runtime_error("OpenSSL: SHA-256 is not available");
  }

  Digest hash(BytesView first, BytesView second) {
    ONCED_CHECK(EVP_DigestInit_ex2(context_.get(), algorithm_.get(), nullptr) == 1);
    update(first);
    if (!second.empty()) update(second);
    Digest digest;
    ONCED_CHECK(EVP_DigestFinal_ex(context_.get(), digest.bytes.data(), nullptr) == 1);
    return digest;
  }

private:
  struct FreeContext {
    void operator()(EVP_MD_CTX *context) const { EVP_MD_CTX_free(context); }
  };
  struct FreeAlgorithm {
    void operator()(EVP_MD *algorithm) const { EVP_MD_free(algorithm); }
  };

  void update(BytesView bytes) { ONCED_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1); }

  std::unique_ptr<EVP_MD, FreeAlgorithm> algorithm_;
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

Digester::Digester() : impl_(std::make_unique<Impl>()) {}
Digester::~Digester() = default;
Digester::Digester(Digester &&) noexcept = default;
Digester &Digester::operator=(Digester &&) noexcept = default;

Digest Digester::intent(std::string_view type, BytesView canonical_payload) {
  ONCED_CHECK(type.size() <= limits::type_bytes_max);
  ONCED_CHECK(canonical_payload.size() <= UINT32_MAX);
  Pieces pieces;
  constexpr auto version = static_cast<char>(canonical_form_version);
  pieces.add({&version, 1});
  pieces.add_length(type.size());
  pieces.add(type);
  pieces.add_length(canonical_payload.size());
  if (canonical_payload.size() > pieces.room()) return impl_->hash(pieces.view(), canonical_payload);
  pieces.add(canonical_payload);
  return impl_->hash(pieces.view(), {});
}

Digest Digester::plain(BytesView bytes) {
  return impl_->hash(bytes, {});
}

Tag Digester::tag(BytesView job) {
  Tag tag;
  const Digest digest = plain(job);
  std::memcpy(tag.bytes.data(), digest.bytes.data(), tag.bytes.size());
  return tag;
}

std::string idempotency_key_of(BytesView key) {
  return to_hex(Digester().plain(key).view());
}

std::string handle_of(const SenderId &sender) {
  constexpr std::size_t handle_bytes = 4;
  if (sender == SenderId{}) return {};
  return to_hex(Digester().plain(sender.view()).view().substr(0, handle_bytes));
}

} // namespace onced
