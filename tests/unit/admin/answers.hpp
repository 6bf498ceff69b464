#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "admin/queries.hpp"
#include "base/messagepack.hpp"
#include "support/queue_harness.hpp"

// Requests, and answers as a test reads them.
namespace onced::testing {

using messagepack::Kind;
using messagepack::Token;
using messagepack::TokenReader;
using messagepack::Writer;

// One map of an answer: scalars as text, as a test wants to compare them. Nil is "nil", an array "[a, b]", an inner map
// "...".
using Fields = std::map<std::string, std::string>;

inline std::string text_of(TokenReader &reader);

inline std::string text_of_array(TokenReader &reader) {
  std::string text = "[";
  for (std::uint64_t left = reader.array(); left > 0 && reader.ok(); --left)
    text.append(text_of(reader)).append(left > 1 ? ", " : "");
  return text + "]";
}

inline std::string text_of(TokenReader &reader) {
  const Token token = *reader.peek();
  if (token.kind == Kind::array) return text_of_array(reader);
  reader.skip();
  switch (token.kind) {
  case Kind::nil:
    return "nil";
  case Kind::boolean:
    return token.number != 0 ? "true" : "false";
  case Kind::positive:
    return std::to_string(token.number);
  case Kind::string:
    return std::string(token.bytes);
  case Kind::binary:
    return "bin " + to_hex(token.bytes);
  default:
    return "...";
  }
}

inline Fields read_map(TokenReader &reader) {
  Fields fields;
  for (std::uint64_t left = reader.map(); left > 0 && reader.ok(); --left) {
    const std::string name(reader.string());
    REQUIRE(reader.peek() != nullptr);
    CHECK(fields.emplace(name, text_of(reader)).second);
  }
  REQUIRE(reader.ok());
  return fields;
}

inline std::vector<Token> tokens_of(BytesView answer) {
  std::vector<Token> tokens;
  REQUIRE(messagepack::tokenize(answer, tokens, 10'000));
  return tokens;
}

inline Fields fields_of(BytesView answer) {
  const auto tokens = tokens_of(answer);
  TokenReader reader(tokens);
  Fields fields = read_map(reader);
  CHECK(reader.at_end());
  return fields;
}

// The error of an answer that has nothing else.
inline Fields error_of(BytesView answer) {
  const auto tokens = tokens_of(answer);
  TokenReader reader(tokens);
  REQUIRE(reader.map() == 1);
  REQUIRE(reader.string() == "error");
  Fields error = read_map(reader);
  CHECK(reader.at_end());
  CHECK(error.size() == 4);
  CHECK_FALSE(error["cause"].empty());
  CHECK_FALSE(error["remedy"].empty());
  return error;
}

inline std::vector<Fields> rows_of(BytesView answer) {
  const auto tokens = tokens_of(answer);
  TokenReader reader(tokens);
  REQUIRE(reader.map() == 1);
  REQUIRE(reader.string() == "rows");
  std::vector<Fields> rows;
  for (std::uint64_t left = reader.array(); left > 0 && reader.ok(); --left)
    rows.push_back(read_map(reader));
  CHECK(reader.at_end());
  return rows;
}

// An answer of "pending list".
struct QueuePage {
  std::vector<Fields> rows;
  std::string next;
  std::string damaged;
};

inline QueuePage queue_page_of(BytesView answer) {
  const auto tokens = tokens_of(answer);
  TokenReader reader(tokens);
  QueuePage page;
  REQUIRE(reader.map() == 3);
  REQUIRE(reader.string() == "rows");
  for (std::uint64_t left = reader.array(); left > 0 && reader.ok(); --left)
    page.rows.push_back(read_map(reader));
  REQUIRE(reader.string() == "next");
  page.next = text_of(reader);
  REQUIRE(reader.string() == "damaged");
  page.damaged = text_of(reader);
  CHECK(reader.at_end());
  return page;
}

inline std::string joined(const std::vector<Fields> &rows, const std::string &field) {
  std::string text;
  for (const Fields &row : rows)
    text.append(text.empty() ? "" : " ").append(row.at(field));
  return text;
}

inline Bytes request(const std::vector<std::pair<std::string, std::string>> &texts) {
  Bytes out;
  Writer writer(out);
  writer.map(texts.size());
  for (const auto &[name, value] : texts)
    writer.string(name).string(value);
  return out;
}

} // namespace onced::testing
