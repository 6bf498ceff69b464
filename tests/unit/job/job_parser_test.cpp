#include <chrono>
#include <string>

#include "onced/digest.hpp"
#include "onced/limits.hpp"
#include "unit/job/support.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

Job parsed(BytesView bytes) {
  JobParser parser;
  Job job;
  const auto result = parser.parse(bytes, job);
  INFO("verdict ", verdict(bytes));
  REQUIRE(result.has_value());
  return job;
}

// A job "demo-1" with one further field.
Bytes with_field(std::string_view name, const Bytes &value) {
  return map_of({{"operation_id", text("demo-1")}, {name, value}});
}

Bytes with_id(const Bytes &id) {
  return map_of({{"operation_id", id}});
}

} // namespace

TEST_CASE("a job's own fields are taken out of the payload") {
  const Job job = parsed(map_of({{"traceparent", text("00-ab-cd-01")},
                                 {"z", integer(1)},
                                 {"operation_id", text("demo-1")},
                                 {"effect_key", text("order-7")},
                                 {"a", integer(2)},
                                 {"type", text("product")}}));
  CHECK(job.operation_id == "demo-1");
  CHECK(job.type == "product");
  CHECK(job.effect_key == "order-7");
  CHECK(job.traceparent == "00-ab-cd-01");
  CHECK(to_hex(job.payload) == "82a16102a17a01");
}

TEST_CASE("a job that names no type is a sum and has neither effect key nor trace context") {
  const Job job = parsed(with_id(text("demo-1")));
  CHECK(job.type == "sum");
  CHECK(job.effect_key.empty());
  CHECK(job.traceparent.empty());
  CHECK(to_hex(job.payload) == "80");
}

TEST_CASE("nothing of one job remains in the next") {
  JobParser parser;
  Job job;
  REQUIRE(parser.parse(map_of({{"operation_id", text("first")},
                               {"type", text("t")},
                               {"effect_key", text("e")},
                               {"traceparent", text("p")},
                               {"value", integer(1)}}),
                       job));
  REQUIRE(parser.parse(with_id(text("second")), job));
  CHECK(job.operation_id == "second");
  CHECK(job.type == "sum");
  CHECK(job.effect_key.empty());
  CHECK(job.traceparent.empty());
  CHECK(to_hex(job.payload) == "80");
}

TEST_CASE("own names inside the payload are payload") {
  const Bytes inner = map_of({{"operation_id", integer(1)}, {"type", integer(2)}});
  CHECK(parsed(job_with(inner)).payload == map_of({{"value", inner}}));
}

TEST_CASE("the payload's head grows with the number of its fields") {
  for (const std::size_t fields : {15U, 16U, 65'535U, 65'536U}) {
    CAPTURE(fields);
    Bytes bytes;
    Bytes payload;
    messagepack::Writer job(bytes);
    messagepack::Writer expected(payload);
    job.map(fields + 1).string("operation_id").string("demo-1");
    expected.map(fields);
    for (std::size_t at = 0; at < fields; ++at) {
      job.string(std::to_string(100'000 + at)).nil();
      expected.string(std::to_string(100'000 + at)).nil();
    }
    CHECK(parsed(bytes).payload == payload);
  }
}

TEST_CASE("ids differ in form and case and may hold separators") {
  for (const std::string_view id : {"\xC3\xA9", "e\xCC\x81", "A", "a", "a:b", "a/b", " a", "a\n"}) {
    CHECK(parsed(with_id(text(id))).operation_id == id);
  }
  const std::string with_nul("a\0b", 3);
  CHECK(parsed(with_id(text(with_nul))).operation_id == with_nul);
}

TEST_CASE("own fields at their limits of length") {
  CHECK(verdict(with_id(text(""))) == "bad_operation_id");
  CHECK(verdict(with_id(text("x"))) == "accepted");
  CHECK(verdict(with_id(text(Bytes(255, 'x')))) == "accepted");
  CHECK(verdict(with_id(text(Bytes(256, 'x')))) == "bad_operation_id");
  CHECK(verdict(with_field("type", text(""))) == "bad_type");
  CHECK(verdict(with_field("type", text(Bytes(64, 'x')))) == "accepted");
  CHECK(verdict(with_field("type", text(Bytes(65, 'x')))) == "bad_type");
  CHECK(verdict(with_field("effect_key", text(""))) == "bad_effect_key");
  CHECK(verdict(with_field("effect_key", text(Bytes(255, 'x')))) == "accepted");
  CHECK(verdict(with_field("effect_key", text(Bytes(256, 'x')))) == "bad_effect_key");
  CHECK(verdict(with_field("traceparent", text(""))) == "accepted");
  CHECK(verdict(with_field("traceparent", text(Bytes(255, 'x')))) == "accepted");
  CHECK(verdict(with_field("traceparent", text(Bytes(256, 'x')))) == "bad_traceparent");
}

TEST_CASE("own fields of another kind than string are refused") {
  for (const std::string_view other : {"c0", "01", "c40161", "91a161", "81a16101", "c3", "cb3fe0000000000000"}) {
    CAPTURE(other);
    CHECK(verdict(with_id(hex(other))) == "bad_operation_id");
    CHECK(verdict(with_field("type", hex(other))) == "bad_type");
    CHECK(verdict(with_field("effect_key", hex(other))) == "bad_effect_key");
    CHECK(verdict(with_field("traceparent", hex(other))) == "bad_traceparent");
  }
}

TEST_CASE("a map without an operation id is refused") {
  CHECK(verdict(hex("80")) == "no_operation_id");
  CHECK(verdict(map_of({{"numbers", hex("9101")}})) == "no_operation_id");
}

TEST_CASE("bytes that are no MessagePack or cut short are malformed") {
  CHECK(verdict("") == "malformed");
  CHECK(verdict(hex("c1")) == "malformed");
  const Bytes whole = job_with(hex("93010203"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(verdict(BytesView(whole).substr(0, size)) == "malformed");
  }
  CHECK(verdict(whole) == "accepted");
}

TEST_CASE("bytes after the job are refused") {
  CHECK(verdict(job_with(integer(1)) + '\0') == "trailing_bytes");
  CHECK(verdict(job_with(integer(1)) + job_with(integer(1))) == "trailing_bytes");
}

TEST_CASE("a job is a map") {
  CHECK(verdict("not-json") == "not_a_map");
  for (const std::string_view other :
       {"c0", "c2", "01", "ff", "a161", "c40161", "90", "d40100", "cb7ff8000000000000"}) {
    CAPTURE(other);
    CHECK(verdict(hex(other)) == "not_a_map");
  }
}

TEST_CASE("the largest job is accepted and one byte more is too large") {
  const std::size_t around =
      map_of({{"operation_id", text("demo-1")}, {"pad", text(Bytes(70'000, 'x'))}}).size() - 70'000;
  const Bytes pad(limits::job_bytes_max - around, 'x');
  const Bytes largest = map_of({{"operation_id", text("demo-1")}, {"pad", text(pad)}});
  REQUIRE(largest.size() == limits::job_bytes_max);
  CHECK(parsed(largest).payload.size() > pad.size());
  CHECK(verdict(largest + 'x') == "too_large");
}

TEST_CASE("nesting counts the job's own map and ends at 16") {
  CHECK(verdict(job_with(nested_arrays(15))) == "accepted");
  CHECK(verdict(job_with(nested_arrays(16))) == "too_deep");
  CHECK(verdict(job_with(Bytes(15, '\x91') + '\x80')) == "too_deep");
  CHECK(verdict(job_with(Bytes(100'000, '\x91'))) == "too_deep");
}

TEST_CASE("names must be strings") {
  for (const std::string_view other : {"c0", "01", "ff", "c40161", "90", "80", "d40100", "cb7ff8000000000000", "c3"}) {
    CAPTURE(other);
    CHECK(verdict(job_with(hex("81") + hex(other) + hex("01"))) == "name_not_a_string");
  }
}

TEST_CASE("duplicate names are refused at any depth") {
  const Bytes twice = map_of({{"a", integer(1)}, {"b", integer(1)}, {"a", integer(1)}});
  CHECK(verdict(job_with(twice)) == "duplicate_name");
  CHECK(verdict(job_with('\x91' + twice)) == "duplicate_name");
  CHECK(verdict(map_of({{"a", integer(1)}, {"operation_id", text("x")}, {"a", integer(1)}})) == "duplicate_name");
  for (const std::string_view own : {"operation_id", "type", "effect_key", "traceparent"}) {
    CAPTURE(own);
    CHECK(verdict(map_of({{"operation_id", text("x")}, {own, text("x")}, {own, text("y")}})) == "duplicate_name");
  }
}

TEST_CASE("strings and names must be UTF-8") {
  CHECK(verdict(job_with(text("\xFF"))) == "invalid_utf8");
  CHECK(verdict(job_with(text("0123456789\xC3"))) == "invalid_utf8");
  CHECK(verdict(map_of({{"operation_id", text("x")}, {"\xFF", integer(1)}})) == "invalid_utf8");
  CHECK(verdict(with_id(text("\xED\xA0\x80"))) == "invalid_utf8");
}

TEST_CASE("floats must be finite and ext types are refused") {
  CHECK(verdict(job_with(hex("cb7ff8000000000000"))) == "not_finite");
  CHECK(verdict(job_with(hex("ca7f800000"))) == "not_finite");
  for (const std::string_view ext : {"d40100", "d5010000", "d60100000000", "c70005", "c8000005", "c90000000005"}) {
    CAPTURE(ext);
    CHECK(verdict(job_with(hex(ext))) == "extension_type");
  }
}

TEST_CASE("of several defects one is reported by rule") {
  const Bytes nan = hex("cb7ff8000000000000");
  CHECK(verdict(map_of({{"a", nan}, {"b", text("\xFF")}})) == "not_finite");
  CHECK(verdict(map_of({{"a", text("\xFF")}, {"b", nan}})) == "invalid_utf8");
  CHECK(verdict(map_of({{"a", integer(1)}, {"a", nan}})) == "not_finite");
  CHECK(verdict(map_of({{"a", integer(1)}, {"a", integer(1)}}) + 'x') == "trailing_bytes");
  CHECK(verdict(map_of({{"a", integer(1)}, {"a", integer(1)}})) == "duplicate_name");
  CHECK(verdict(map_of({{"type", integer(1)}})) == "no_operation_id");
  CHECK(verdict(map_of({{"traceparent", integer(1)}, {"effect_key", integer(1)}, {"operation_id", text("x")}})) ==
        "bad_effect_key");
}

TEST_CASE("heads that claim four billion elements cost nothing") {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string_view bomb : {"ddffffffff", "dfffffffff", "dbffffffff", "c6ffffffff", "c9ffffffff01"}) {
    CAPTURE(bomb);
    CHECK(verdict(job_with(hex(bomb))) == "malformed");
  }
  CHECK(verdict(hex("dfffffffff")) == "malformed");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
}

TEST_CASE("a map of many entries in the worst order is sorted in time") {
  // 200 thousand distinct names, in falling order.
  Bytes bytes;
  messagepack::Writer writer(bytes);
  writer.map(200'001).string("operation_id").string("x");
  for (int at = 0; at < 200'000; ++at) {
    Bytes name;
    for (int digits = 199'999 - at, digit = 0; digit < 3; ++digit, digits /= 64) {
      name.insert(name.begin(), static_cast<char>('0' + digits % 64));
    }
    writer.string(name).nil();
  }
  REQUIRE(bytes.size() < limits::job_bytes_max);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(verdict(bytes) == "accepted");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("deliveries of one intent meet and other intents do not") {
  const auto digest_of = [](const Bytes &numbers) {
    Digester digester;
    const Job job = parsed(map_of({{"operation_id", text("demo-1")}, {"numbers", numbers}}));
    return digester.intent(job.type, job.payload);
  };
  const Digest digest = digest_of(hex("93010203"));
  CHECK(digest_of('\x93' + floating(1.0) + hex("0203")) == digest);
  CHECK(digest_of(hex("93cc01cd0002d200000003")) == digest);
  CHECK(digest_of(hex("93030201")) != digest);
  CHECK(digest_of('\x91' + floating(-0.0)) == digest_of(hex("9100")));
  CHECK(digest_of('\x91' + floating(9007199254740992.0)) == digest_of(hex("91cf0020000000000000")));
  CHECK(digest_of(hex("91cf0020000000000001")) != digest_of(hex("91cf0020000000000000")));
}
