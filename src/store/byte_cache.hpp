#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "onced/bytes.hpp"

namespace onced::store {

// Short values by short keys, of which it forgets those that were asked for least lately. Bounded by the bytes it is
// given, all of which are reserved at once and taken as they are used. Any thread.
class ByteCache {
public:
  static constexpr std::size_t text_bytes_max = 188; // a key and its value

  explicit ByteCache(std::size_t bytes);

  // True: the key is here, and `use` was called with its value, which is valid during the call.
  template <class Use> [[nodiscard]] bool find(BytesView key, Use &&use) {
    if (set_count_ == 0) return false;
    const Place place = place_of(key);
    const std::size_t at = slot_of(place, key);
    if (at == slots_a_set) return false;
    place.set.asked_for = static_cast<std::uint8_t>(place.set.asked_for | 1U << at);
    use(place.set.slots[at].value());
    return true;
  }

  // The value is `value` followed by `more`. The first value of a key stays; what is too long is not kept.
  void keep(BytesView key, BytesView value, BytesView more = {});

private:
  static constexpr std::size_t slots_a_set = 8;
  static constexpr std::size_t locks = 64;

  struct Slot {
    std::uint16_t key_bytes;
    std::uint16_t value_bytes;
    std::array<char, text_bytes_max> text;

    [[nodiscard]] bool holds(BytesView key) const { return BytesView(text.data(), key_bytes) == key; }
    [[nodiscard]] BytesView value() const { return {text.data() + key_bytes, value_bytes}; }
  };
  static_assert(sizeof(Slot) == 192);
  // Where a key may lie. Its tags, a part of the hash of each slot's key, share a cache line: few slots are looked at
  // in vain.
  struct alignas(64) Set {
    std::array<std::uint32_t, slots_a_set> tags; // 0: the slot is empty
    std::uint8_t asked_for;                      // a bit for each slot: since the hand came by
    std::uint8_t hand;                           // the slot that is looked at next when one is needed
    alignas(64) std::array<Slot, slots_a_set> slots;
  };

  // The place of a key, held by its lock.
  struct Place {
    Set &set;
    std::uint32_t tag;
    std::unique_lock<std::mutex> lock;
  };
  struct Unmap {
    std::size_t bytes;
    void operator()(void *memory) const;
  };

  [[nodiscard]] Place place_of(BytesView key);
  [[nodiscard]] static std::size_t slot_of(const Place &place, BytesView key);
  [[nodiscard]] static std::size_t free_slot(Set &set);

  std::size_t set_count_; // 0: it keeps nothing
  std::unique_ptr<Set[], Unmap> sets_;
  std::array<std::mutex, locks> locks_; // each guards every 64th set
};

} // namespace onced::store
