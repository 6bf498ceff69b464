// The head of a map says how many entries it has, in its shortest form. Not here: what the entries are called.
#include <string>

#include <doctest/doctest.h>

#include "admin/map_writer.hpp"

namespace onced::testing {
namespace {

TEST_CASE("a map counts its entries and an inner map and an array of maps are one entry each") {
  for (const std::size_t more : {std::size_t{0}, std::size_t{12}, std::size_t{13}, std::size_t{70'000}}) {
    CAPTURE(more);
    admin::MapWriter map;
    admin::MapWriter inner;
    inner.boolean("known", true);
    map.map("inner", inner);
    map.maps("rows", std::vector<int>{1, 2}, [](admin::MapWriter &row, int number) {
      row.number("number", static_cast<std::uint64_t>(number));
      row.text("text", {});
    });
    map.string("name", "a");
    for (std::size_t number = 0; number < more; ++number)
      map.number(std::to_string(number), number);

    Bytes expected;
    messagepack::Writer writer(expected);
    writer.map(3 + more).string("inner").map(1).string("known").boolean(true).string("rows").array(2);
    for (const std::uint64_t number : {1U, 2U})
      writer.map(2).string("number").positive(number).string("text").nil();
    writer.string("name").string("a");
    for (std::size_t number = 0; number < more; ++number)
      writer.string(std::to_string(number)).positive(number);
    CHECK(map.bytes() == expected);
  }
}

TEST_CASE("a map without entries is an empty map") {
  CHECK(admin::MapWriter().bytes() == Bytes("\x80"));
}

} // namespace
} // namespace onced::testing
