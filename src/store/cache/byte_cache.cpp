#include "store/cache/byte_cache.hpp"

#include <atomic>
#include <new>
#include <string_view>
#include <type_traits>

#include <sys/mman.h>

namespace onced::store {

void ByteCache::Unmap::operator()(void *memory) const {
  ::munmap(memory, bytes);
}

ByteCache::ByteCache(std::size_t bytes)
    : set_count_(bytes / sizeof(Set)), sets_(nullptr, Unmap{set_count_ * sizeof(Set)}) {
  static_assert(std::is_trivially_copyable_v<Set>);
  if (set_count_ == 0) return;
  // Pages of the kernel's, zero and not there until they are used: a large cache costs an opening nothing.
  void *memory = ::mmap(nullptr, sets_.get_deleter().bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // In large pages, where the kernel has them: it is read here and there, so each look-up would miss the list of pages.
  static_cast<void>(::madvise(memory, sets_.get_deleter().bytes, MADV_HUGEPAGE));
  sets_.reset(static_cast<Set *>(memory));
}

ByteCache::Spot ByteCache::spot_of(BytesView key) const {
  const std::uint64_t hash = std::hash<std::string_view>()(key);
  return {.set = hash % set_count_, .tag = static_cast<std::uint32_t>(hash >> 32U) | 1U};
}

void ByteCache::fetch_tags(const Spot &spot) const {
  __builtin_prefetch(&sets_[spot.set]);
}

// A guess, as it holds no lock: what it fetches is looked at again.
void ByteCache::fetch_slot(const Spot &spot) const {
  Set &set = sets_[spot.set];
  for (std::size_t at = 0; at < slots_a_set; ++at) {
    if (std::atomic_ref(set.tags[at]).load(std::memory_order_relaxed) != spot.tag) continue;
    __builtin_prefetch(&set.slots[at]);
    __builtin_prefetch(set.slots[at].text.data() + 60);
  }
}

std::size_t ByteCache::slot_of(const Set &set, std::uint32_t tag, BytesView key) {
  std::size_t at = 0;
  while (at < slots_a_set && (set.tags[at] != tag || !set.slots[at].holds(key)))
    ++at;
  return at;
}

void ByteCache::keep(BytesView key, BytesView value, BytesView more) {
  if (set_count_ == 0 || key.size() + value.size() + more.size() > text_bytes_max) return;
  const Spot spot = spot_of(key);
  const std::scoped_lock lock(lock_of(spot));
  Set &set = sets_[spot.set];
  if (slot_of(set, spot.tag, key) != slots_a_set) return;
  const std::size_t at = free_slot(set);
  std::atomic_ref(set.tags[at]).store(spot.tag, std::memory_order_relaxed);
  Slot &slot = set.slots[at];
  slot.key_bytes = static_cast<std::uint16_t>(key.size());
  slot.value_bytes = static_cast<std::uint16_t>(value.size() + more.size());
  char *text = slot.text.data();
  for (const BytesView part : {key, value, more})
    text += part.copy(text, part.size());
}

// The hand goes round (the clock algorithm): it spares once what was asked for since it came by.
std::size_t ByteCache::free_slot(Set &set) {
  while (true) {
    const std::size_t at = set.hand;
    set.hand = static_cast<std::uint8_t>((at + 1) % slots_a_set);
    const unsigned bit = 1U << at;
    if (set.tags[at] == 0 || (set.asked_for & bit) == 0) return at;
    set.asked_for = static_cast<std::uint8_t>(set.asked_for & ~bit);
  }
}

} // namespace onced::store
