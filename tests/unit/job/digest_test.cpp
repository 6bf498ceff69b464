#include "onced/digest.hpp"

#include <set>
#include <utility>

#include "unit/job/support.hpp"

using namespace onced;
using namespace onced::testing;

TEST_CASE("the key of an operation is a tag and type and id with their lengths") {
  CHECK(to_hex(key_of_operation("sum", "demo-1").bytes) == "01"
                                                           "03"
                                                           "73756d"
                                                           "06"
                                                           "64656d6f2d31");
}

TEST_CASE("the key of an effect is a tag and the effect key with its length") {
  CHECK(to_hex(key_of_effect("order-7").bytes) == "02"
                                                  "07"
                                                  "6f726465722d37");
}

TEST_CASE("an effect key replaces type and operation id in the key") {
  Key key;
  assign_key({.operation_id = "a", .type = "t", .effect_key = "e", .traceparent = {}, .payload = {}}, key);
  CHECK(key == key_of_effect("e"));
  assign_key({.operation_id = "a", .type = "t", .effect_key = {}, .traceparent = "p", .payload = {}}, key);
  CHECK(key == key_of_operation("t", "a"));
}

TEST_CASE("different parts never meet in one key") {
  std::set<Bytes> keys;
  std::size_t pairs = 0;
  for (const std::string_view type : {"a", "ab", "a\x01",
                                      "a\x01"
                                      "b"}) {
    for (const std::string_view id : {"b", "ab", "bb",
                                      "\x01"
                                      "b",
                                      "a\x01"
                                      "b",
                                      "B"}) {
      keys.insert(key_of_operation(type, id).bytes);
      ++pairs;
    }
  }
  keys.insert(key_of_effect("a").bytes);
  CHECK(keys.size() == pairs + 1);
}

TEST_CASE("ids of the greatest length fit their one-byte lengths") {
  const Bytes key = key_of_operation(Bytes(64, 't'), Bytes(255, 'i')).bytes;
  CHECK(key.size() == 1 + 1 + 64 + 1 + 255);
  CHECK(key[66] == '\xFF');
  CHECK(key_of_effect(Bytes(255, 'e')).bytes.size() == 257);
}

TEST_CASE("a key tells what it is made of and other bytes are no key") {
  const Key operation = key_of_operation("sum", Bytes(255, 'i'));
  const auto parts = parts_of_key(operation.bytes);
  REQUIRE(parts.has_value());
  CHECK(parts->type == "sum");
  CHECK(parts->operation_id == Bytes(255, 'i'));
  CHECK(parts->effect_key.empty());
  const Key effect = key_of_effect("order-7");
  CHECK(parts_of_key(effect.bytes)->effect_key == "order-7");
  CHECK(parts_of_key(effect.bytes)->type.empty());
  for (const Bytes &whole : {operation.bytes, effect.bytes}) {
    for (std::size_t size = 0; size < whole.size(); ++size)
      CHECK(!parts_of_key(whole.substr(0, size)));
    CHECK(!parts_of_key(whole + "x"));
  }
  CHECK(!parts_of_key("\x03\x01x"));
  CHECK(!parts_of_key("\x02\x01\xFF"));
  CHECK(!parts_of_key(Bytes("\x01\x00\x01x", 4)));
}

TEST_CASE("plain digests are those of SHA-256") {
  Digester digester;
  CHECK(to_hex(digester.plain("").view()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(to_hex(digester.plain("abc").view()) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(to_hex(digester.plain("").view()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("a tag is the first 8 bytes of the digest") {
  Digester digester;
  CHECK(to_hex(digester.tag("abc").view()) == "ba7816bf8f01cfea");
}

TEST_CASE("an intent is version and type and payload with their lengths whatever the payload's size") {
  Digester digester;
  for (const std::size_t size : {0U, 1U, 100U, 495U, 500U, 501U, 512U, 513U, 70'000U}) {
    CAPTURE(size);
    const Bytes payload(size, 'p');
    Bytes whole = hex("01"
                      "00000003"
                      "73756d");
    for (unsigned shift = 32; shift > 0; shift -= 8) {
      whole += static_cast<char>(size >> (shift - 8) & 0xFFU);
    }
    whole += payload;
    CHECK(digester.intent("sum", payload) == digester.plain(whole));
  }
}

TEST_CASE("type and payload do not run into each other in an intent") {
  Digester digester;
  CHECK(digester.intent("ab", "c") != digester.intent("a", "bc"));
  CHECK(digester.intent("sum", "\x80") != digester.intent("product", "\x80"));
}

TEST_CASE("a digester can be moved") {
  Digester first;
  Digester second(std::move(first));
  CHECK(to_hex(second.tag("abc").view()) == "ba7816bf8f01cfea");
}
