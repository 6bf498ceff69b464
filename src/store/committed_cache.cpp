#include "store/committed_cache.hpp"

#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

#include <sys/mman.h>

namespace onced::store {

void CommittedCache::Unmap::operator()(void *memory) const {
  ::munmap(memory, bytes);
}

CommittedCache::CommittedCache(std::size_t bytes)
    : set_count_(bytes / sizeof(Set)), sets_(nullptr, Unmap{set_count_ * sizeof(Set)}) {
  static_assert(std::is_trivially_copyable_v<Set>);
  if (set_count_ == 0) return;
  // Pages of the kernel's, zero and not there until they are used: a large cache costs an opening nothing.
  void *memory = ::mmap(nullptr, sets_.get_deleter().bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  sets_.reset(static_cast<Set *>(memory));
}

CommittedCache::Place CommittedCache::place_of(const Key &key) {
  const std::uint64_t hash = std::hash<std::string_view>()(key.bytes);
  const std::size_t at = hash % set_count_;
  return {.set = sets_[at],
          .tag = static_cast<std::uint32_t>(hash >> 32U) | 1U,
          .lock = std::unique_lock(locks_[at % locks])};
}

bool CommittedCache::Slot::holds(const Key &key) const {
  return key_bytes == key.bytes.size() && std::memcmp(text.data(), key.bytes.data(), key_bytes) == 0;
}

// `slots_a_set` where there is none.
std::size_t CommittedCache::slot_of(const Place &place, const Key &key) {
  std::size_t at = 0;
  while (at < slots_a_set && (place.set.tags[at] != place.tag || !place.set.slots[at].holds(key)))
    ++at;
  return at;
}

bool CommittedCache::find(const Key &key, KeyRow &row) {
  if (set_count_ == 0) return false;
  const Place place = place_of(key);
  const std::size_t at = slot_of(place, key);
  if (at == slots_a_set) return false;
  place.set.asked_for = static_cast<std::uint8_t>(place.set.asked_for | 1U << at);
  const Slot &slot = place.set.slots[at];
  row.state = KeyRow::State::present;
  row.phase = Phase::committed;
  row.digest = slot.digest;
  row.result.assign(slot.result());
  return true;
}

void CommittedCache::keep(const Key &key, const Digest &digest, BytesView result) {
  if (set_count_ == 0 || key.bytes.size() + result.size() > text_bytes_max) return;
  const Place place = place_of(key);
  if (slot_of(place, key) != slots_a_set) return;
  const std::size_t at = free_slot(place.set);
  place.set.tags[at] = place.tag;
  Slot &slot = place.set.slots[at];
  slot.key_bytes = static_cast<std::uint16_t>(key.bytes.size());
  slot.result_bytes = static_cast<std::uint16_t>(result.size());
  slot.digest = digest;
  std::memcpy(slot.text.data(), key.bytes.data(), key.bytes.size());
  std::memcpy(slot.text.data() + key.bytes.size(), result.data(), result.size());
}

// The hand goes round (the clock algorithm): it spares once what was asked for since it came by.
std::size_t CommittedCache::free_slot(Set &set) {
  while (true) {
    const std::size_t at = set.hand;
    set.hand = static_cast<std::uint8_t>((at + 1) % slots_a_set);
    const unsigned bit = 1U << at;
    if (set.tags[at] == 0 || (set.asked_for & bit) == 0) return at;
    set.asked_for = static_cast<std::uint8_t>(set.asked_for & ~bit);
  }
}

} // namespace onced::store
