#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "onced/digest.hpp"
#include "onced/job.hpp"
#include "store/verdict.hpp"

namespace onced::store {

// The digests and results of keys that were committed or asked for lately, so that a duplicate of one costs a hash and
// a compare and no look-up in RocksDB. It holds only what is on stable storage (page_cache: in the page cache), and
// what it does not hold may be there all the same: it never says "absent". Rows do not change, so nothing in it goes
// stale; whoever makes them change must forget them here. Bounded by the bytes it is given, all of which are reserved
// at once and taken as they are used. Any thread.
class CommittedCache {
public:
  explicit CommittedCache(std::size_t bytes);

  // True: the key's row is committed, and `row` is it.
  [[nodiscard]] bool find(const Key &key, KeyRow &row);

  // A row too long for a slot is not kept.
  void keep(const Key &key, const Digest &digest, BytesView result);

private:
  static constexpr std::size_t slots_a_set = 8;
  static constexpr std::size_t text_bytes_max = 156; // a key and its result
  static constexpr std::size_t locks = 64;

  struct Slot {
    std::uint16_t key_bytes;
    std::uint16_t result_bytes;
    Digest digest;
    std::array<char, text_bytes_max> text;

    [[nodiscard]] bool holds(const Key &key) const;
    [[nodiscard]] BytesView result() const { return {text.data() + key_bytes, result_bytes}; }
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

  [[nodiscard]] Place place_of(const Key &key);
  [[nodiscard]] static std::size_t slot_of(const Place &place, const Key &key);
  [[nodiscard]] static std::size_t free_slot(Set &set);

  std::size_t set_count_; // 0: it keeps nothing
  std::unique_ptr<Set[], Unmap> sets_;
  std::array<std::mutex, locks> locks_; // each guards every 64th set
};

} // namespace onced::store
