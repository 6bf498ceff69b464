#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/error.hpp"

namespace onced::store {

// Where one thread notes which job its inline handler runs. Lives no longer than the slots. One thread at a time.
class RunningSlot {
public:
  RunningSlot() = default; // notes nothing

  void enter(BytesView key, bool alone);
  void leave();

private:
  friend class RunningSlots;
  explicit RunningSlot(char *memory) : memory_(memory) {}
  char *memory_ = nullptr;
};

// `running.slots`: the key of the job that each thread runs an inline handler for. The file is mapped, so noting a job
// is a store to memory, and what was noted outlives the process, however that ends. It needs no sync: a power cut is
// not the handler's doing. An opening writes it whole, so that every page has its block: a mapped page that needs a new
// one kills the process where the disk is full.
class RunningSlots {
public:
  // A job that was running when the process ended.
  struct Found {
    Bytes key;
    bool alone = false;
  };

  // Makes the file where there is none, and anew where it is none of ours. Errors: `store_unavailable`, `not_found`.
  [[nodiscard]] static Result<std::unique_ptr<RunningSlots>> open(const std::filesystem::path &directory);

  // What the process before has left. Bytes that are no key are passed over.
  [[nodiscard]] std::vector<Found> found() const;
  // Forgets it. Before any `take`.
  void clear();

  // A slot that nobody else has; where there are none left, one that notes nothing. Any thread.
  [[nodiscard]] RunningSlot take();

private:
  struct Unmap {
    void operator()(char *memory) const;
  };
  explicit RunningSlots(char *memory) : memory_(memory) {}

  std::unique_ptr<char, Unmap> memory_;
  std::atomic<std::size_t> taken_{0};
};

} // namespace onced::store
