#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "context.hpp"
#include "onced/clock.hpp"
#include "onced/handler.hpp"
#include "onced/store.hpp"
#include "seam.hpp"
#include "store/job_queue.hpp"
#include "store/rows/records.hpp"
#include "support/memory_engine.hpp"

namespace simulation {

// What the worker answers.
struct Verdict {
  onced::Outcome outcome = onced::Outcome::busy;
  std::uint64_t result = 0;
};

// The others are run by functions.
inline bool runs_as_command(std::size_t key) {
  return key % 2 == 0;
}

// The worker's store: the real logic over an engine in memory, which fails as it is told. What it writes is shown to
// the ledger, row by row.
class StoreNode final : public onced::Clock {
public:
  explicit StoreNode(Context &context);
  ~StoreNode() override = default;
  StoreNode(const StoreNode &) = delete;
  StoreNode &operator=(const StoreNode &) = delete;

  // False: that failed.
  [[nodiscard]] bool open();
  void close() { store_.reset(); }
  [[nodiscard]] bool is_open() const { return store_ != nullptr; }
  // The process ends, or the machine.
  void crash();
  // Of the last opening that succeeded.
  [[nodiscard]] std::uint32_t boot() const { return boot_; }

  // One call of the engine goes wrong, the next one of this kind.
  void arm(onced::testing::EngineCall call, onced::testing::EngineFault fault) { armed_ = {call, fault}; }
  void disarm() { armed_.reset(); }

  struct Answer {
    Verdict verdict;
    bool is_new_in_queue = false;
  };
  // Of each job. Nothing: the store has failed.
  [[nodiscard]] std::optional<std::vector<Answer>> commit(std::span<const std::uint8_t> jobs);
  // Another worker over the same rows commits the job. Others can read it, and it is not stable yet.
  void commit_elsewhere(std::size_t job);
  [[nodiscard]] onced::store::JobQueue &queue() { return store_->queue(); }
  [[nodiscard]] const onced::QueuedType &type_of(std::size_t key) const;
  [[nodiscard]] const onced::Bytes &name_of(std::size_t key) const { return names_[key].bytes; }
  [[nodiscard]] std::size_t key_named(const onced::Bytes &name) const;
  // Mutation: see Seam.
  void use_stale_locks(bool stale) { seam_.locks_are_stale = stale; }
  void forget_before_unknown() { seam_.before_unknown.reset(); }

  // Shows the ledger what is there now, unless that is not stable yet. Throws `Broken`.
  void observe(const Cause &cause);
  // The sums are those of the rows. Throws `Broken`.
  void check_sums();

  [[nodiscard]] onced::WallTime wall() override { return context_.wall(); }
  [[nodiscard]] onced::MonotonicTime monotonic() override { return context_.now; }

private:
  // A job as the worker receives it.
  struct Input {
    onced::Bytes bytes;
    std::optional<onced::Job> job;
    onced::Key key;
    onced::Digest digest;
    onced::Tag tag;
  };

  void add_handlers();
  [[nodiscard]] onced::Result<std::unique_ptr<onced::Store>> open_over(std::unique_ptr<onced::engine::Engine> engine);
  void write_inputs();
  [[nodiscard]] onced::Bytes bytes_of(std::size_t index) const;
  [[nodiscard]] onced::Delivery delivery_of(std::size_t index) const;
  [[nodiscard]] onced::testing::EngineFault fault_of(onced::testing::EngineCall call);
  [[nodiscard]] Answer answer_of(std::size_t index, const onced::Settlement &settlement);
  [[nodiscard]] Ledger::Row row_of(const onced::engine::View &view, std::size_t key);
  void bury_if_written(std::size_t index, onced::Outcome reason);
  [[nodiscard]] bool has_letter(std::size_t index, onced::Outcome reason);

  Context &context_;
  Seam seam_;
  std::shared_ptr<onced::testing::MemoryDisk> disk_;
  std::unique_ptr<onced::engine::Engine> reader_; // only for views
  std::optional<std::pair<onced::testing::EngineCall, onced::testing::EngineFault>> armed_;
  onced::Handlers handlers_;
  onced::Digester digester_;
  onced::store::RecordDecoder decoder_;
  std::vector<Input> inputs_; // by job
  std::array<onced::Key, Ledger::keys_max> names_;
  onced::SeededRandom ids_;
  std::unique_ptr<onced::Store> store_;
  std::uint32_t boot_ = 0;
};

} // namespace simulation
