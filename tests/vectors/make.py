#!/usr/bin/env python3
"""Writes jobs.json: an implementation of canonical form, key and digest that shares nothing with the C++ one.

It needs nothing but Python's standard library. Run it in this folder after a deliberate change of the form.
"""

import hashlib
import json
import math
import struct

NESTING_MAX = 16
JOB_BYTES_MAX = 1024 * 1024 - 64
EXACT_INTEGER_MAX = 2**53
FORM_VERSION = 1


class Refused(Exception):
    pass


# --- Values: None, bool, int, float, str, bytes, list, and Map (pairs in the order of the bytes) ---------------------


class Map:
    def __init__(self, pairs):
        self.pairs = pairs


def head(value_size, short, forms):
    """The shortest of the forms [(largest size, first byte, bytes of size)]; `short` is (largest, first byte) or None."""
    if short and value_size <= short[0]:
        return bytes([short[1] | value_size])
    for largest, first, width in forms:
        if value_size <= largest:
            return bytes([first]) + value_size.to_bytes(width, "big")
    raise ValueError(value_size)


def encode_integer(value):
    if value >= 0:
        forms = [(0xFF, 0xCC, 1), (0xFFFF, 0xCD, 2), (0xFFFFFFFF, 0xCE, 4), (2**64 - 1, 0xCF, 8)]
        return head(value, (0x7F, 0), forms)
    if value >= -32:
        return value.to_bytes(1, "big", signed=True)
    for width, first in ((1, 0xD0), (2, 0xD1), (4, 0xD2), (8, 0xD3)):
        if value >= -(2 ** (8 * width - 1)):
            return bytes([first]) + value.to_bytes(width, "big", signed=True)
    raise ValueError(value)


def canonical(value):
    """The canonical bytes of a value that has passed `read`."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return encode_integer(value)
    if isinstance(value, float):
        if value.is_integer() and abs(value) <= EXACT_INTEGER_MAX:
            return encode_integer(int(value))
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode("utf-8")
        return head(len(data), (31, 0xA0), [(0xFF, 0xD9, 1), (0xFFFF, 0xDA, 2), (2**32 - 1, 0xDB, 4)]) + data
    if isinstance(value, bytes):
        return head(len(value), None, [(0xFF, 0xC4, 1), (0xFFFF, 0xC5, 2), (2**32 - 1, 0xC6, 4)]) + value
    if isinstance(value, list):
        items = b"".join(canonical(item) for item in value)
        return head(len(value), (15, 0x90), [(0xFFFF, 0xDC, 2), (2**32 - 1, 0xDD, 4)]) + items
    pairs = sorted(value.pairs, key=lambda pair: pair[0].encode("utf-8"))
    items = b"".join(canonical(name) + canonical(item) for name, item in pairs)
    return head(len(pairs), (15, 0x80), [(0xFFFF, 0xDE, 2), (2**32 - 1, 0xDF, 4)]) + items


# --- Reading ---------------------------------------------------------------------------------------------------------


class Reader:
    def __init__(self, data):
        self.data, self.at, self.duplicates = data, 0, False

    def take(self, size):
        if self.at + size > len(self.data):
            raise Refused("malformed")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, width):
        return int.from_bytes(self.take(width), "big")

    def read(self, place="value", depth=0):
        """One value. `place` is "value", "name" (of a map) or "job"."""
        kind, content = self.token()
        if place == "job" and kind != "map":
            raise Refused("not_a_map")
        if place == "name" and kind != "str":
            raise Refused("name_not_a_string")
        if kind in ("map", "array"):
            if depth + 1 > NESTING_MAX:
                raise Refused("too_deep")
            return self.container(kind, content, depth + 1)
        if kind == "str":
            try:
                return content.decode("utf-8")
            except UnicodeDecodeError:
                raise Refused("invalid_utf8") from None
        if kind == "float" and not math.isfinite(content):
            raise Refused("not_finite")
        if kind == "ext":
            raise Refused("extension_type")
        return content

    def container(self, kind, size, depth):
        if kind == "array":
            items = []
            while len(items) < size:
                items.append(self.read("value", depth))
            return items
        pairs = []
        while len(pairs) < size:
            name = self.read("name", depth)
            pairs.append((name, self.read("value", depth)))
        if len({name for name, _ in pairs}) < size:
            self.duplicates = True
        return Map(pairs)

    def token(self):
        first = self.number(1)
        if first <= 0x7F:
            return "int", first
        if first <= 0x8F:
            return "map", first & 0x0F
        if first <= 0x9F:
            return "array", first & 0x0F
        if first <= 0xBF:
            return "str", self.take(first & 0x1F)
        if first >= 0xE0:
            return "int", first - 256
        if first in (0xC0, 0xC2, 0xC3):
            return "simple", {0xC0: None, 0xC2: False, 0xC3: True}[first]
        if 0xC4 <= first <= 0xC6:
            return "bin", self.take(self.number(1 << (first - 0xC4)))
        if 0xC7 <= first <= 0xC9:
            return "ext", self.take(self.number(1 << (first - 0xC7)) + 1)
        if first == 0xCA:
            return "float", struct.unpack(">f", self.take(4))[0]
        if first == 0xCB:
            return "float", struct.unpack(">d", self.take(8))[0]
        if 0xCC <= first <= 0xCF:
            return "int", self.number(1 << (first - 0xCC))
        if 0xD0 <= first <= 0xD3:
            return "int", int.from_bytes(self.take(1 << (first - 0xD0)), "big", signed=True)
        if 0xD4 <= first <= 0xD8:
            return "ext", self.take((1 << (first - 0xD4)) + 1)
        if 0xD9 <= first <= 0xDB:
            return "str", self.take(self.number(1 << (first - 0xD9)))
        if first in (0xDC, 0xDD):
            return "array", self.number(2 if first == 0xDC else 4)
        if first in (0xDE, 0xDF):
            return "map", self.number(2 if first == 0xDE else 4)
        raise Refused("malformed")


OWN_FIELDS = {"operation_id": (1, 255), "type": (1, 64), "effect_key": (1, 255), "traceparent": (0, 255)}


def parse(data):
    """The job's own fields and its payload, or Refused."""
    if len(data) > JOB_BYTES_MAX:
        raise Refused("too_large")
    reader = Reader(data)
    job = reader.read("job")
    if reader.at != len(data):
        raise Refused("trailing_bytes")
    if reader.duplicates:
        raise Refused("duplicate_name")
    fields = {name: value for name, value in job.pairs if name in OWN_FIELDS}
    if "operation_id" not in fields:
        raise Refused("no_operation_id")
    for name, (least, most) in OWN_FIELDS.items():
        if name in fields:
            value = fields[name]
            if not isinstance(value, str) or not least <= len(value.encode("utf-8")) <= most:
                raise Refused("bad_" + name)
    return fields, Map([pair for pair in job.pairs if pair[0] not in OWN_FIELDS])


def short(text):
    data = text.encode("utf-8")
    return bytes([len(data)]) + data


def long(data):
    return len(data).to_bytes(4, "big") + data


def accepted(name, data):
    fields, payload = parse(data)
    job_type = fields.get("type", "sum")
    form = canonical(payload)
    if fields.get("effect_key"):
        key = b"\x02" + short(fields["effect_key"])
    else:
        key = b"\x01" + short(job_type) + short(fields["operation_id"])
    digest = hashlib.sha256(bytes([FORM_VERSION]) + long(job_type.encode("utf-8")) + long(form)).hexdigest()
    return {
        "name": name,
        "job_hex": data.hex(),
        "type": job_type,
        "operation_id": fields["operation_id"],
        "effect_key": fields.get("effect_key"),
        "canonical_hex": form.hex(),
        "key_hex": key.hex(),
        "digest_hex": digest,
    }


def refused(name, reason, data, zeros=0):
    try:
        parse(data + bytes(zeros))
    except Refused as why:
        assert str(why) == reason, (name, str(why), reason)
    else:
        raise AssertionError(name + " is accepted")
    entry = {"name": name, "job_hex": data.hex(), "reason": reason}
    if zeros:
        entry["zeros_appended"] = zeros
    return entry


# --- The cases -------------------------------------------------------------------------------------------------------


def text(value):
    return canonical(value)


def raw_map(*parts):
    """A map from bytes: name, value, name, value ..."""
    return bytes([0x80 | len(parts) // 2]) + b"".join(parts)


def job(*parts, operation_id="demo-1"):
    """A job whose payload fields are given as bytes: name, value, ..."""
    return raw_map(text("operation_id"), text(operation_id), *parts)


def numbers(*items):
    return job(text("numbers"), bytes([0x90 | len(items)]) + b"".join(items))


def f64(value):
    return b"\xcb" + struct.pack(">d", value)


def f32(value):
    return b"\xca" + struct.pack(">f", value)


def field(value):
    return job(text("value"), value)


def deep(levels):
    """A job of which the payload adds `levels` arrays, one in another."""
    return field(b"\x91" * (levels - 1) + b"\x90")


def all_accepted():
    one_two_three = text("numbers") + text([1, 2, 3])
    yield "the worked example", numbers(b"\x01", b"\x02", b"\x03")
    yield "another order of the numbers is another intent", numbers(b"\x03", b"\x02", b"\x01")
    yield "a 64-bit float that is integral", numbers(f64(1.0), b"\x02", b"\x03")
    yield "32-bit floats that are integral", numbers(f32(1.0), f32(2.0), f32(3.0))
    yield "wide unsigned integers", numbers(b"\xcc\x01", b"\xcd\x00\x02", b"\xce\x00\x00\x00\x03")
    yield "wide signed integers", numbers(b"\xd0\x01", b"\xd1\x00\x02", b"\xd3" + (3).to_bytes(8, "big"))
    yield "16-bit heads for the map and the array", (
        b"\xde\x00\x02" + text("operation_id") + text("demo-1") + text("numbers") + b"\xdc\x00\x03\x01\x02\x03"
    )
    yield "32-bit heads for the map and the array", (
        b"\xdf\x00\x00\x00\x02" + text("operation_id") + text("demo-1") + text("numbers") + b"\xdd\x00\x00\x00\x03\x01\x02\x03"
    )
    yield "long heads for strings", (
        b"\x82" + b"\xd9\x0coperation_id" + b"\xda\x00\x06demo-1" + b"\xdb\x00\x00\x00\x07numbers" + text([1, 2, 3])
    )
    yield "the operation id last", raw_map(text("numbers"), text([1, 2, 3]), text("operation_id"), text("demo-1"))
    yield "the default type spelt out", (
        b"\x83" + text("type") + text("sum") + text("operation_id") + text("demo-1") + one_two_three
    )
    yield "another type", b"\x83" + text("type") + text("product") + text("operation_id") + text("demo-1") + one_two_three
    yield "an effect key", b"\x83" + text("effect_key") + text("order-7") + text("operation_id") + text("demo-1") + one_two_three
    yield "trace context is not digested", (
        b"\x83" + text("traceparent") + text("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        + text("operation_id") + text("demo-1") + one_two_three
    )
    yield "empty trace context", b"\x82" + text("traceparent") + text("") + text("operation_id") + text("demo-1")
    yield "an empty payload", job()
    yield "no numbers", numbers()
    yield "zero", numbers(b"\x00")
    yield "negative zero", numbers(f64(-0.0))
    yield "negative zero of 32 bits", numbers(f32(-0.0))
    yield "a fraction", field(f64(0.1))
    yield "a fraction of 32 bits is widened", field(f32(0.1))
    yield "the least 64-bit float", field(f64(5e-324))
    yield "the least 32-bit float", field(f32(1e-45))
    yield "the largest 64-bit float", field(f64(1.7976931348623157e308))
    yield "2^53 as a float", field(f64(2.0**53))
    yield "2^53 as an integer", field(encode_integer(2**53))
    yield "2^53 + 1 is exact", field(encode_integer(2**53 + 1))
    yield "2^53 + 2 as a float stays a float", field(f64(2.0**53 + 2))
    yield "-2^53 as a float", field(f64(-(2.0**53)))
    yield "-2^53 - 2 as a float stays a float", field(f64(-(2.0**53) - 2))
    for value in (127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1):
        yield "integer %d" % value, field(b"\xcf" + value.to_bytes(8, "big"))
    for value in (-1, -32, -33, -128, -129, -32768, -32769, -(2**31), -(2**31) - 1, -(2**63)):
        yield "integer %d" % value, field(b"\xd3" + value.to_bytes(8, "big", signed=True))
    yield "nil, false and true", job(text("a"), b"\xc0", text("b"), b"\xc2", text("c"), b"\xc3")
    for size in (0, 31, 32, 255, 256):
        yield "a string of %d bytes" % size, field(b"\xdb" + size.to_bytes(4, "big") + b"s" * size)
        yield "a binary of %d bytes" % size, field(b"\xc6" + size.to_bytes(4, "big") + b"s" * size)
    yield "an array of 16 in a long head", field(b"\xdd\x00\x00\x00\x10" + bytes(range(16)))
    yield "a map of 16 in a long head, in falling order", field(
        b"\xdf\x00\x00\x00\x10" + b"".join(text("k%02d" % at) + bytes([at]) for at in reversed(range(16)))
    )
    yield "names in order of bytes, not of length", job(text("b"), b"\x01", text("aa"), b"\x02", text("B"), b"\x03", text(""), b"\x04")
    yield "names beyond ASCII", job(text("\u00e9"), b"\x01", text("z"), b"\x02", text("\U0001f600"), b"\x03", text("\uffff"), b"\x04")
    yield "a name that begins another", job(text("ab"), b"\x01", text("a"), b"\x02", text("a\x00"), b"\x03")
    yield "maps inside maps", field(raw_map(text("y"), raw_map(text("q"), b"\x01", text("p"), b"\x02"), text("x"), b"\xcc\x05"))
    yield "maps inside an array keep their places", field(b"\x92" + raw_map(text("b"), b"\x01", text("a"), b"\x02") + b"\x80")
    yield "own names below the top are payload", field(raw_map(text("type"), b"\x01", text("operation_id"), b"\x02"))
    yield "names that differ from own names in case", job(text("Type"), b"\x01", text("operation_ids"), b"\x02")
    yield "composed and decomposed text differ (composed)", field(text("\u00e9"))
    yield "composed and decomposed text differ (decomposed)", field(text("e\u0301"))
    yield "an operation id of 1 byte", job(operation_id="x")
    yield "an operation id of 255 bytes", job(operation_id="x" * 255)
    yield "an operation id with separators and NUL", job(operation_id="a/b:c\x00d")
    yield "an operation id beyond ASCII", job(operation_id="\u00fcber-\U0001f600")
    yield "a type of 64 bytes", b"\x82" + text("type") + text("t" * 64) + text("operation_id") + text("demo-1")
    yield "an effect key of 255 bytes", b"\x82" + text("effect_key") + text("e" * 255) + text("operation_id") + text("demo-1")
    yield "nesting of 16", deep(15)


def own(name, value):
    return raw_map(text("operation_id"), text("demo-1"), text(name), value)


def all_refused():
    good = job()
    yield "no bytes", "malformed", b""
    yield "cut short", "malformed", numbers(b"\x01", b"\x02")[:-1]
    yield "a byte that MessagePack never uses", "malformed", field(b"\xc1")
    yield "an array that claims 4294967295 elements", "malformed", field(b"\xdd\xff\xff\xff\xff")
    yield "a map that claims 4294967295 entries", "malformed", b"\xdf\xff\xff\xff\xff"
    yield "a string that claims 4294967295 bytes", "malformed", field(b"\xdb\xff\xff\xff\xff")
    yield "a byte after the job", "trailing_bytes", good + b"\x00"
    yield "two jobs", "trailing_bytes", good + good
    padded = JOB_BYTES_MAX + 1 - len(job(text("pad"), b"\xc6\x00\x00\x00\x00"))
    yield "one byte too many", "too_large", job(text("pad"), b"\xc6" + padded.to_bytes(4, "big")), padded
    yield "nesting of 17", "too_deep", deep(16)
    yield "nesting of 17 by a map", "too_deep", field(b"\x91" * 15 + b"\x80")
    yield "text", "not_a_map", b"not-json"
    yield "an array", "not_a_map", text([1, 2, 3])
    yield "nil", "not_a_map", b"\xc0"
    yield "a string", "not_a_map", text("operation_id")
    yield "an integer as a name", "name_not_a_string", job(b"\x01", b"\x01")
    yield "a binary as a name", "name_not_a_string", field(b"\x81\xc4\x01a\x01")
    yield "a map as a name", "name_not_a_string", job(b"\x80", b"\x01")
    yield "a payload name twice", "duplicate_name", job(text("a"), b"\x01", text("b"), b"\x01", text("a"), b"\x01")
    yield "a name twice in a row", "duplicate_name", job(text("a"), b"\x01", text("a"), b"\x02")
    yield "a name twice below the top", "duplicate_name", field(raw_map(text("a"), b"\x01", text("a"), b"\x01"))
    yield "a name twice in two widths", "duplicate_name", job(b"\xd9\x01a", b"\x01", text("a"), b"\x01")
    yield "the operation id twice", "duplicate_name", own("operation_id", text("demo-1"))
    yield "a string cut inside a character", "invalid_utf8", field(b"\xa1\xc3")
    yield "an overlong form", "invalid_utf8", field(b"\xa2\xc0\x80")
    yield "a surrogate", "invalid_utf8", field(b"\xa3\xed\xa0\x80")
    yield "a code point beyond the last", "invalid_utf8", field(b"\xa4\xf4\x90\x80\x80")
    yield "a name that is no UTF-8", "invalid_utf8", job(b"\xa1\xff", b"\x01")
    yield "an operation id that is no UTF-8", "invalid_utf8", b"\x81" + text("operation_id") + b"\xa1\xff"
    yield "NaN", "not_finite", numbers(f64(math.nan))
    yield "infinity", "not_finite", numbers(f64(math.inf))
    yield "minus infinity of 32 bits", "not_finite", numbers(f32(-math.inf))
    yield "a fixed ext", "extension_type", field(b"\xd4\x01\x00")
    yield "an ext of 8-bit length", "extension_type", field(b"\xc7\x00\x05")
    yield "a timestamp", "extension_type", field(b"\xd6\xff\x00\x00\x00\x00")
    yield "an empty map", "no_operation_id", b"\x80"
    yield "a job without an operation id", "no_operation_id", raw_map(text("numbers"), text([1]))
    yield "an empty operation id", "bad_operation_id", job(operation_id="")
    yield "an operation id of 256 bytes", "bad_operation_id", job(operation_id="x" * 256)
    yield "an operation id that is an integer", "bad_operation_id", b"\x81" + text("operation_id") + b"\x01"
    yield "an operation id that is a binary", "bad_operation_id", b"\x81" + text("operation_id") + b"\xc4\x01x"
    yield "an operation id that is nil", "bad_operation_id", b"\x81" + text("operation_id") + b"\xc0"
    yield "an empty type", "bad_type", own("type", text(""))
    yield "a type of 65 bytes", "bad_type", own("type", text("t" * 65))
    yield "a type that is nil", "bad_type", own("type", b"\xc0")
    yield "an empty effect key", "bad_effect_key", own("effect_key", text(""))
    yield "an effect key of 256 bytes", "bad_effect_key", own("effect_key", text("e" * 256))
    yield "an effect key that is a map", "bad_effect_key", own("effect_key", raw_map(text("a"), b"\x01"))
    yield "trace context of 256 bytes", "bad_traceparent", own("traceparent", text("t" * 256))
    yield "trace context that is nil", "bad_traceparent", own("traceparent", b"\xc0")
    # Several defects: which one is reported is part of the form.
    yield "reading in order: NaN before bad UTF-8", "not_finite", job(text("a"), f64(math.nan), text("b"), b"\xa1\xff")
    yield "reading in order: bad UTF-8 before NaN", "invalid_utf8", job(text("a"), b"\xa1\xff", text("b"), f64(math.nan))
    yield "a place counts before a kind", "name_not_a_string", job(f64(math.nan), b"\x01")
    yield "reading before names", "not_finite", job(text("a"), b"\x01", text("a"), f64(math.nan))
    yield "trailing bytes before names", "trailing_bytes", job(text("a"), b"\x01", text("a"), b"\x01") + b"\x00"
    yield "names before own fields", "duplicate_name", raw_map(text("a"), b"\x01", text("a"), b"\x01")
    yield "own fields in their order", "bad_type", raw_map(
        text("effect_key"), b"\xc0", text("type"), b"\xc0", text("operation_id"), text("x")
    )


def main():
    vectors = {
        "version": FORM_VERSION,
        "accepted": [accepted(name, data) for name, data in all_accepted()],
        "refused": [refused(*case) for case in all_refused()],
    }
    with open("jobs.json", "w", encoding="utf-8") as out:
        json.dump(vectors, out, ensure_ascii=True, indent=1)
        out.write("\n")
    print(len(vectors["accepted"]), "accepted,", len(vectors["refused"]), "refused")


if __name__ == "__main__":
    main()
