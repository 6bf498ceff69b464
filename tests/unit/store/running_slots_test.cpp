// The file `running.slots` by itself: what is noted in it outlives the process, and what is none of ours harms nobody.
// What an opening of the store makes of it is in suspects_test.cpp; a full disk under it in tests/contract.
#include <doctest/doctest.h>

#include <fstream>

#include "base/scratch_directory.hpp"
#include "onced/digest.hpp"
#include "onced/limits.hpp"
#include "store/suspects/running_slots.hpp"
#include "support/file_content.hpp"
#include "support/scene.hpp"

using namespace onced;
using namespace onced::store;
using namespace onced::testing;

namespace {

constexpr std::size_t slot_bytes = 512;
const Bytes demo = key_of_operation("demo", "job-1").bytes;

std::unique_ptr<RunningSlots> open_slots(const std::filesystem::path &directory) {
  auto opened = RunningSlots::open(directory);
  REQUIRE(opened.has_value());
  return std::move(*opened);
}

std::vector<Bytes> keys_in(const std::filesystem::path &directory) {
  std::vector<Bytes> keys;
  for (const auto &found : open_slots(directory)->found())
    keys.push_back(found.key);
  return keys;
}

void replace(const std::filesystem::path &directory, const std::string &content) {
  std::ofstream(directory / "running.slots", std::ios::binary | std::ios::trunc) << content;
}

} // namespace

TEST_CASE("scene: a process ends while it runs a job" * doctest::skip()) {
  const std::string directory = scene_parameter("ONCED_SCENE_DIRECTORY");
  if (directory.empty()) return;
  auto slots = open_slots(directory);
  RunningSlot before = slots->take();
  before.enter(key_of_operation("demo", "job-0").bytes, false);
  before.leave();
  RunningSlot slot = slots->take();
  slot.enter(key_of_operation("demo", "a longer one").bytes, true);
  slot.leave();
  slot.enter(demo, true);
  kill_this_process();
}

TEST_CASE("a job that runs when its process is killed is found and one that has ended is not") {
  const ScratchDirectory directory;
  CHECK(play("scene: a process ends while it runs a job", {{"ONCED_SCENE_DIRECTORY", directory.path().string()}})
            .is_kill());
  const auto slots = open_slots(directory.path());
  const auto found = slots->found();
  REQUIRE(found.size() == 1);
  CHECK(found[0].key == demo);
  CHECK(found[0].alone);
  slots->clear();
  CHECK(keys_in(directory.path()).empty());
}

TEST_CASE("the file is its magic and then the slots") {
  const ScratchDirectory directory;
  const auto slots = open_slots(directory.path());
  RunningSlot first = slots->take();
  RunningSlot second = slots->take();
  first.enter("\x02\x01"
              "A",
              false);
  second.enter("\x02\x02"
               "BC",
               true);
  const std::string content = content_of(directory.path() / "running.slots");
  CHECK(content.size() == slot_bytes * (1 + limits::running_slots));
  CHECK(content.substr(0, 20) == std::string("onced slots 1\0\0\n\0\0\0\0", 20));
  CHECK(content.substr(slot_bytes, 8) == std::string("\x03\0\0\0\x02\x01"
                                                     "A\0",
                                                     8));
  CHECK(content.substr(2 * slot_bytes, 9) == std::string("\x04\0\x01\0\x02\x02"
                                                         "BC\0",
                                                         9));
}

TEST_CASE("a slot whose bytes are no key is passed over") {
  const ScratchDirectory directory;
  {
    const auto slots = open_slots(directory.path());
    RunningSlot slot = slots->take();
    slot.enter(demo, false);
    RunningSlot other = slots->take();
    other.enter(key_of_effect("invoice-7").bytes, false);
  }
  const std::string whole = content_of(directory.path() / "running.slots");
  CHECK(keys_in(directory.path()) == std::vector<Bytes>{demo, key_of_effect("invoice-7").bytes});
  // Its length, in its first byte and in its second; its tag; the length of the type in it.
  const std::vector<std::pair<std::size_t, char>> damages{{0, 3}, {0, 0x7F}, {1, 0x7F}, {4, 3}, {4, 0},
                                                          {5, 0}, {5, 5},    {5, 65},   {0, 0}};
  for (const auto &damage : damages) {
    CAPTURE(damage.first);
    CAPTURE(damage.second);
    std::string torn = whole;
    torn[slot_bytes + damage.first] = damage.second;
    replace(directory.path(), torn);
    CHECK(keys_in(directory.path()) == std::vector<Bytes>{key_of_effect("invoice-7").bytes});
  }
}

TEST_CASE("a file that is none of ours is made anew") {
  const ScratchDirectory directory;
  static_cast<void>(open_slots(directory.path()));
  const std::string fresh = content_of(directory.path() / "running.slots");
  for (const std::string &other :
       {std::string(), std::string("nonsense"), fresh.substr(0, fresh.size() - 1), fresh + "x",
        "another slots 1\n" + fresh.substr(16, slot_bytes - 16) + std::string(fresh.size() - slot_bytes, '\x02')}) {
    CAPTURE(other.size());
    replace(directory.path(), other);
    CHECK(keys_in(directory.path()).empty());
    CHECK(content_of(directory.path() / "running.slots") == fresh);
  }
}

TEST_CASE("what cannot be opened as a file is an error that names it") {
  const ScratchDirectory directory;
  std::filesystem::create_directory(directory.path() / "running.slots");
  const auto refused = RunningSlots::open(directory.path());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().concerns == (directory.path() / "running.slots").string());
}

TEST_CASE("each slot is given out once and who comes when there are none left notes nothing") {
  const ScratchDirectory directory;
  const auto slots = open_slots(directory.path());
  const auto enter = [&](std::size_t number) {
    slots->take().enter(key_of_effect("job-" + std::to_string(number)).bytes, false);
  };
  for (std::size_t number = 0; number < limits::running_slots; ++number)
    enter(number);
  CHECK(slots->found().size() == limits::running_slots);
  const std::string full = content_of(directory.path() / "running.slots");
  enter(limits::running_slots);
  CHECK(content_of(directory.path() / "running.slots") == full);
}

TEST_CASE("the longest keys fit a slot") {
  const ScratchDirectory directory;
  const auto slots = open_slots(directory.path());
  const std::vector<Bytes> keys{
      key_of_operation(std::string(limits::type_bytes_max, 't'), std::string(limits::operation_id_bytes_max, 'o'))
          .bytes,
      key_of_effect(std::string(limits::effect_key_bytes_max, 'e')).bytes};
  for (const Bytes &key : keys)
    slots->take().enter(key, true);
  CHECK(keys_in(directory.path()) == keys);
}
