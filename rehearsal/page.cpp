#include "rehearsal/page.hpp"

#include <string_view>

namespace onced::rehearsal {
namespace {

// A raw string, which the compiler takes in with everything else that it depends on.
constexpr std::string_view page_template =
#include "rehearsal/page.html"
    ;
constexpr std::string_view record_place = "@record@";
constexpr std::size_t place_at = page_template.find(record_place);
static_assert(place_at != std::string_view::npos);

// The record stands in a script element, which ends at "</script" and in which "<!--" too has a meaning. In JSON a "<"
// is found within strings only, where it may be written otherwise. The page's own script makes nothing of the record
// markup.
Bytes as_script_data(const Json &record) {
  Bytes data;
  for (const char byte : record.dump()) {
    if (byte == '<') {
      data += "\\u003c";
    } else {
      data += byte;
    }
  }
  return data;
}

} // namespace

Bytes render_html(const Json &record) {
  Bytes page{page_template.substr(0, place_at)};
  page += as_script_data(record);
  page += page_template.substr(place_at + record_place.size());
  return page;
}

} // namespace onced::rehearsal
