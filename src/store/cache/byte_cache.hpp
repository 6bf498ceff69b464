#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

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
    return set_count_ != 0 && find_in(spot_of(key), key, use);
  }

  // The same for many keys: `use` is called with the index of each that is here, and its value. Their memory is fetched
  // side by side, which is where the time of a look-up goes.
  template <class Use> void find_all(std::span<const BytesView> keys, Use &&use) {
    if (set_count_ == 0) return;
    std::array<Spot, keys_at_once> spots;
    for (std::size_t first = 0; first < keys.size(); first += keys_at_once) {
      const auto some = keys.subspan(first, std::min(keys_at_once, keys.size() - first));
      for (std::size_t at = 0; at < some.size(); ++at)
        fetch_tags(spots[at] = spot_of(some[at]));
      for (std::size_t at = 0; at < some.size(); ++at)
        fetch_slot(spots[at]);
      for (std::size_t at = 0; at < some.size(); ++at)
        static_cast<void>(find_in(spots[at], some[at], [&](BytesView value) { use(first + at, value); }));
    }
  }

  // The value is `value` followed by `more`. The first value of a key stays; what is too long is not kept.
  void keep(BytesView key, BytesView value, BytesView more = {});

private:
  static constexpr std::size_t slots_a_set = 8;
  static constexpr std::size_t locks = 64;
  static constexpr std::size_t keys_at_once = 16;

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

  // Where a key lies, if it does.
  struct Spot {
    std::size_t set;
    std::uint32_t tag;
  };
  struct Unmap {
    std::size_t bytes;
    void operator()(void *memory) const;
  };

  [[nodiscard]] Spot spot_of(BytesView key) const;
  void fetch_tags(const Spot &spot) const;
  void fetch_slot(const Spot &spot) const;
  [[nodiscard]] std::mutex &lock_of(const Spot &spot) { return locks_[spot.set % locks]; }
  // Both under the set's lock. `slots_a_set` where there is none.
  [[nodiscard]] static std::size_t slot_of(const Set &set, std::uint32_t tag, BytesView key);
  [[nodiscard]] static std::size_t free_slot(Set &set);

  template <class Use> bool find_in(const Spot &spot, BytesView key, Use &&use) {
    const std::scoped_lock lock(lock_of(spot));
    Set &set = sets_[spot.set];
    const std::size_t at = slot_of(set, spot.tag, key);
    if (at == slots_a_set) return false;
    set.asked_for = static_cast<std::uint8_t>(set.asked_for | 1U << at);
    use(set.slots[at].value());
    return true;
  }

  std::size_t set_count_; // 0: it keeps nothing
  std::unique_ptr<Set[], Unmap> sets_;
  std::array<std::mutex, locks> locks_; // each guards every 64th set
};

} // namespace onced::store
