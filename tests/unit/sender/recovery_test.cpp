// Verifies how recovery times are taken. The times are the test's own.
#include "sender/recovery.hpp"

#include <doctest/doctest.h>

#include "onced/limits.hpp"

namespace onced::testing {
namespace {

using sender::Recovery;
using std::chrono::milliseconds;
using Times = std::vector<milliseconds>;

MonotonicTime at(int ms) {
  return MonotonicTime{milliseconds{ms}};
}
BootId boot(std::uint8_t number) {
  BootId id;
  id.bytes.fill(number);
  return id;
}

TEST_CASE("a recovery lasts from the last word of the old boot to the first job settled under the new one") {
  Recovery recovery;
  recovery.greeted(boot(1), true, at(0));
  recovery.settled(at(5));
  recovery.replied(boot(1), at(10));
  recovery.greeted(boot(2), true, at(300));
  recovery.replied(boot(1), at(350)); // late
  recovery.settled(at(400));
  recovery.settled(at(500));
  CHECK(recovery.new_boots() == 1);
  CHECK(recovery.times() == Times{milliseconds{390}});
}

TEST_CASE("a boot that settles nothing belongs to the same recovery") {
  Recovery recovery;
  recovery.greeted(boot(1), true, at(10));
  recovery.greeted(boot(2), true, at(100));
  recovery.greeted(boot(3), true, at(200));
  recovery.settled(at(210));
  CHECK(recovery.new_boots() == 2);
  CHECK(recovery.times() == Times{milliseconds{200}});
}

TEST_CASE("without a new boot or without jobs there is no recovery") {
  Recovery recovery;
  recovery.greeted(boot(1), true, at(0));
  recovery.greeted(boot(1), true, at(100));
  recovery.settled(at(110));
  recovery.greeted(boot(2), false, at(200));
  recovery.settled(at(9000));
  CHECK(recovery.times().empty());
}

TEST_CASE("the latest recoveries are kept") {
  Recovery recovery;
  const auto count = static_cast<int>(limits::recoveries_kept_max) + 1;
  recovery.greeted(boot(0), true, at(0));
  for (int time = 1; time <= count; ++time) {
    recovery.greeted(boot(static_cast<std::uint8_t>(time % 2)), true, at(1000 * time));
    recovery.settled(at(1000 * time + (time == count ? 7 : 1)));
  }
  const Times times = recovery.times();
  CHECK(times.size() == limits::recoveries_kept_max);
  CHECK(times.back() == milliseconds{1007});
  CHECK(times.front() == milliseconds{1001});
}

} // namespace
} // namespace onced::testing
