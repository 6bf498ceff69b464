#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "onced/bytes.hpp"

// What every engine must do, as functions over a factory of engines. Verified: units, locks, claims, failed commits,
// crashes, sums, views, boots. Not verified: that a commit is on stable storage, which tests/power and tests/disk do.
namespace onced::testing {

// How a commit goes wrong.
enum class CommitFault : std::uint8_t {
  retry,           // it loses a race
  unavailable,     // it is not sent
  unknown_written, // it is sent, written, and fails
  unknown_lost,    // it is sent, not written, and fails
};

// The rows of one store, and an engine over them that has begun a boot. It outlives every session and view of it.
class Subject {
public:
  Subject() = default;
  virtual ~Subject() = default;
  Subject(const Subject &) = delete;
  Subject &operator=(const Subject &) = delete;

  [[nodiscard]] virtual engine::Engine &engine() = 0; // another one after each opening
  [[nodiscard]] virtual std::uint64_t boot() const = 0;
  // Closes the engine in order, which needs that it has no session and no view, and opens it again.
  virtual void reopen() = 0;
  // The engine ends in the middle of what it does, and another is opened over what is left. Sessions and views of the
  // old one may still be destroyed.
  virtual void crash() = 0;

  // False, of each: this engine cannot be made to.
  [[nodiscard]] virtual bool fail_next_commit(CommitFault fault) = 0;
  [[nodiscard]] virtual bool damage(engine::Family family, BytesView key) = 0;
  // Commits can be read by others as soon as they are sent, and are then held before they are stable.
  [[nodiscard]] virtual bool hold_visible_commits() = 0;
  virtual void release_commits() = 0;
  // How many steps of chance this engine takes in a few seconds.
  [[nodiscard]] virtual unsigned random_steps() const = 0;
};
using EngineFactory = std::function<std::unique_ptr<Subject>()>;

struct ContractCase {
  const char *name;
  void (*run)(const EngineFactory &factory);
};
[[nodiscard]] std::span<const ContractCase> unit_cases();
[[nodiscard]] std::span<const ContractCase> failure_cases();
[[nodiscard]] std::span<const ContractCase> view_cases();
[[nodiscard]] std::span<const ContractCase> model_cases();

// Runs every case as a subcase of the test case that calls it.
void run_contract(const EngineFactory &factory);

// --- Short forms of what the cases do often. A step that fails is a failed test. ------------------------------------

using engine::Found;
using State = engine::Found::State;

[[nodiscard]] std::unique_ptr<engine::Session> begun(engine::Engine &engine);
// The states and values that a call has found; the values of rows that are not there are empty.
struct Seen {
  State state = State::absent;
  Bytes value;
  bool operator==(const Seen &) const = default;
};
[[nodiscard]] Seen claim(engine::Session &session, BytesView key, BytesView value,
                         engine::Patience how = engine::Patience::none);
[[nodiscard]] Seen lock(engine::Session &session, BytesView key, engine::Patience how = engine::Patience::none);
void put(engine::Session &session, BytesView key, BytesView value);
void commit(engine::Session &session);
// The commit fails; returns how. The unit is over.
[[nodiscard]] engine::Failure::Kind failed_commit(engine::Session &session);

// A unit by itself.
void store_row(engine::Engine &engine, BytesView key, BytesView value);
// The committed row, by a session of its own; nothing: absent.
[[nodiscard]] std::optional<Bytes> stored(engine::Engine &engine, BytesView key,
                                          engine::Family family = engine::Family::operations);
[[nodiscard]] std::int64_t sum_of(engine::Engine &engine, engine::Counter counter);
[[nodiscard]] std::vector<Bytes> keys_in(const engine::View &view, const engine::Range &range);

} // namespace onced::testing
