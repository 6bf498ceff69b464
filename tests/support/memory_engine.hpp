#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "onced/bytes.hpp"

namespace onced::testing {

// The calls of an engine that can be made to fail.
enum class EngineCall : std::uint8_t { read, lock, claim, put, erase, commit, confirm, boot };

// How a call goes wrong.
enum class EngineFault : std::uint8_t {
  none,
  retry,           // a step of a unit loses a race
  unavailable,     // nothing is written
  unknown_written, // a commit, this and the next two: written, and stable
  unknown_lost,    // not written
  unknown_visible, // others can read the rows, and a crash takes them away unless a later commit or `confirm` keeps
                   // them
  crash,           // the machine crashes before the call does anything
  crash_written,   // the machine crashes after the commit is stable, and before it returns
};

// Called with the disk locked, so it must not use the disk.
using EngineFaults = std::function<EngineFault(EngineCall)>;

// When a commit can be read by others, and when it is stable.
enum class MemoryMode : std::uint8_t {
  stable,  // both at once
  visible, // others can read the rows as soon as the commit is sent; they are stable when it returns, or when a later
           // commit or `confirm` of anybody has returned
  lying,   // no commit is stable until `confirm`: a disk that lies. An engine that breaks the contract, for controls.
};

enum class CrashOf : std::uint8_t { process, machine };

// The rows of a store in memory, which outlive the engines over them. Any thread. No lock of it is held over a unit.
class MemoryDisk : public std::enable_shared_from_this<MemoryDisk> {
public:
  struct Options {
    MemoryMode mode = MemoryMode::stable;
    std::chrono::milliseconds lock_patience{10'000}; // how long a unit waits for the row of another
  };
  [[nodiscard]] static std::shared_ptr<MemoryDisk> make() { return make(Options{}); }
  [[nodiscard]] static std::shared_ptr<MemoryDisk> make(Options options);

  // An engine over the rows. Several at once are several workers over one store.
  [[nodiscard]] std::unique_ptr<engine::Engine> open();

  // All engines that are open are dead from now on: their calls fail, their units are gone, their waits end. A crash of
  // the machine takes the rows along that are not stable.
  void crash(CrashOf of = CrashOf::machine);

  // The next call of this kind fails so, once. Those that are told first come first.
  void fail_next(EngineCall call, EngineFault fault);
  // Asked at each call for which `fail_next` has said nothing.
  void set_faults(EngineFaults faults);
  // From now on no commit goes on after it was sent, until they are released.
  void hold_commits();
  void release_commits();
  // How many commits are held now, and how many units wait for a row.
  [[nodiscard]] std::size_t held_commits() const;
  [[nodiscard]] std::size_t waiting_units() const;

  // The row cannot be read from now on, until it is put or erased.
  void damage(engine::Family family, BytesView key);

private:
  friend class MemorySession;
  friend class MemoryView;
  friend class MemoryEngine;

  using Key = std::pair<engine::Family, Bytes>;
  struct Row {
    Bytes value;
    bool damaged = false;
  };
  struct Rows {
    std::array<std::map<Bytes, Row, std::less<>>, engine::all_families.size()> families;
    engine::Counters counters;
    unsigned views = 0; // that read it; guarded by the disk's mutex. Rows that somebody views are never changed.
  };
  // A row of a unit; no value: erased.
  struct Write {
    Key key;
    std::optional<Bytes> value;
  };
  struct Undo {
    Key key;
    std::optional<Row> before;
  };

  explicit MemoryDisk(Options options) : options_(options), rows_(std::make_shared<Rows>()) {}

  // --- With the disk locked ---
  [[nodiscard]] EngineFault draw(EngineCall call);
  [[nodiscard]] Rows &rows_to_change();
  [[nodiscard]] const Row *find(engine::Family family, BytesView key) const;
  void set(const Key &key, std::optional<Row> row);
  void apply(const std::vector<Write> &writes, const engine::Counters &added, bool stable);
  void make_stable();
  void crash_locked(CrashOf of);

  const Options options_;
  mutable std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  std::shared_ptr<Rows> rows_;
  std::vector<Undo> unstable_; // how to take the changes back that are not stable, the first one first
  engine::Counters unstable_counters_;
  std::map<Key, const void *> locks_; // by which session
  std::uint64_t boots_ = 0;
  std::string identity_;
  std::optional<std::uint64_t> format_;
  std::uint64_t crashes_ = 0; // an engine that was opened before the last one is dead

  std::vector<std::pair<EngineCall, EngineFault>> script_;
  EngineFaults faults_;
  bool holds_commits_ = false;
  std::size_t held_commits_ = 0;
  std::size_t waiting_units_ = 0;
};

} // namespace onced::testing
