#include "power/load.hpp"

namespace onced::testing {
namespace {

constexpr std::size_t good_before = 100;
constexpr std::size_t good_during = 4000;
constexpr std::size_t bad_every = 14; // of those during: a bad one follows so many good ones

std::string quoted(const std::string &text) {
  return '"' + text + '"';
}

std::string job(const std::string &name, const std::string &more) {
  return R"({"operation_id":)" + quoted(name) + "," + more + "}\n";
}

std::string sum(std::size_t number, std::size_t other) {
  return R"("numbers":[)" + std::to_string(number) + "," + std::to_string(other) + "]";
}

} // namespace

Load make_load(const std::string &prefix, std::size_t pad_bytes) {
  Load load;
  const std::string pad = R"("pad":)" + quoted(std::string(pad_bytes, 'x'));
  for (std::size_t number = 0; number < good_before; ++number) {
    const std::string name = prefix + "base-" + std::to_string(number);
    load.before += job(name, sum(number, 1));
    load.fates[name] = stored(number + 1);
  }
  for (std::size_t number = 0; number < good_during; ++number) {
    const std::string name = prefix + std::to_string(number);
    load.during += job(name, sum(number, 2));
    load.fates[name] = stored(number + 2);
    if (number % bad_every != 0) continue;

    const std::size_t bad = load.bad++;
    const std::string poison = prefix + "poison-" + std::to_string(bad);
    if (bad % 3 == 0 && bad / 3 < good_before) {
      const std::string victim = prefix + "base-" + std::to_string(bad / 3);
      load.during += job(victim, sum(bad / 3, 1000));
      load.fates[victim + conflict_mark] = "conflict";
    } else if (bad % 3 == 1) {
      load.during += job(poison, R"("type":"unheard-of",)" + pad);
      load.fates[poison] = "invalid";
    } else {
      load.during += job(poison, R"("numbers":[9223372036854775807,1])");
      load.fates[poison] = "failed";
    }
  }
  return load;
}

Fates::value_type fate_in(const Line &line) {
  std::string name = line["operation_id"];
  std::string fate = line["outcome"];
  if (fate == "stored" || fate == "duplicate") fate = "stored " + line["result"];
  if (fate == "conflict") name += conflict_mark;
  return {name, fate};
}

} // namespace onced::testing
