#include "store/suspects/running_slots.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "onced/digest.hpp"
#include "onced/limits.hpp"

namespace onced::store {
namespace {

// The file: the magic alone in the place of a slot, then the slots. A slot: 4 bytes, in the machine's own order, that
// say how long the key is (0: nothing runs) and whether it runs alone; then the key.
constexpr std::string_view slots_file_name = "running.slots";
constexpr std::string_view slots_magic{"onced slots 1\0\0\n", 16};
constexpr std::size_t slot_bytes = 512;
constexpr std::size_t file_bytes = slot_bytes * (1 + limits::running_slots);
constexpr std::uint32_t alone_flag = 0x10000;
constexpr std::size_t key_offset = sizeof(std::uint32_t);
static_assert(3 + limits::type_bytes_max + limits::operation_id_bytes_max <= slot_bytes - key_offset &&
                  2 + limits::effect_key_bytes_max <= slot_bytes - key_offset,
              "any key fits a slot");

std::atomic_ref<std::uint32_t> word_of(char *slot) {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t *>(slot));
}

// The bytes that are there, or those of a new file where they are none of ours.
std::string read_slots(const Descriptor &file) {
  std::string content(file_bytes + 1, '\0');
  const ssize_t size = ::pread(file.number(), content.data(), content.size(), 0);
  if (size != static_cast<ssize_t>(file_bytes) || !content.starts_with(slots_magic)) {
    content.assign(slots_magic);
    content.resize(file_bytes);
  }
  content.resize(file_bytes);
  return content;
}

// Whole, also where it is the same: a copied file may have holes.
bool write_slots(const Descriptor &file, const std::string &content) {
  return ::pwrite(file.number(), content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()) &&
         ::ftruncate(file.number(), static_cast<off_t>(content.size())) == 0;
}

} // namespace

// What is seen after the end of the process is what this thread has done so far, in this order: a processor ends a
// thread between two instructions. Only the compiler must be kept from another order.
void RunningSlot::enter(BytesView key, bool alone) {
  if (memory_ == nullptr || key.size() > slot_bytes - key_offset) return;
  std::memcpy(memory_ + key_offset, key.data(), key.size());
  word_of(memory_).store(static_cast<std::uint32_t>(key.size()) | (alone ? alone_flag : 0), std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void RunningSlot::leave() {
  if (memory_ == nullptr) return;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  word_of(memory_).store(0, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void RunningSlots::Unmap::operator()(char *memory) const {
  ::munmap(memory, file_bytes);
}

Result<std::unique_ptr<RunningSlots>> RunningSlots::open(const std::filesystem::path &directory) {
  const auto path = directory / slots_file_name;
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return tl::unexpected(system_error(path, "open"));
  if (!write_slots(file, read_slots(file))) return tl::unexpected(system_error(path, "write"));
  void *memory = ::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.number(), 0);
  if (memory == MAP_FAILED) return tl::unexpected(system_error(path, "map"));
  return std::unique_ptr<RunningSlots>(new RunningSlots(static_cast<char *>(memory)));
}

std::vector<RunningSlots::Found> RunningSlots::found() const {
  std::vector<Found> found;
  for (std::size_t at = 1; at <= limits::running_slots; ++at) {
    char *slot = memory_.get() + at * slot_bytes;
    const std::uint32_t word = word_of(slot).load(std::memory_order_acquire);
    const std::size_t length = word & ~alone_flag;
    if (length == 0 || length > slot_bytes - key_offset) continue;
    const BytesView key(slot + key_offset, length);
    if (parts_of_key(key)) found.push_back({.key = Bytes(key), .alone = (word & alone_flag) != 0});
  }
  return found;
}

void RunningSlots::clear() {
  std::memset(memory_.get() + slot_bytes, 0, file_bytes - slot_bytes);
}

RunningSlot RunningSlots::take() {
  const std::size_t at = 1 + taken_.fetch_add(1);
  return at <= limits::running_slots ? RunningSlot(memory_.get() + at * slot_bytes) : RunningSlot();
}

} // namespace onced::store
