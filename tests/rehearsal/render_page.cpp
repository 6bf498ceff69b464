// Renders the page of a record: what the browser test looks at. Usage: render_page < record.json > record.html
#include "rehearsal/page.hpp"

#include <iostream>

int main() {
  std::cout << onced::rehearsal::render_html(onced::rehearsal::Json::parse(std::cin));
  return std::cout.flush() ? 0 : 1;
}
