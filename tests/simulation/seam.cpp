#include "seam.hpp"

#include <deque>
#include <utility>

namespace simulation {

using onced::Bytes;
using onced::BytesView;
using onced::Result;
using onced::engine::Claim;
using onced::engine::Counter;
using onced::engine::Counters;
using onced::engine::Engine;
using onced::engine::Failure;
using onced::engine::Family;
using onced::engine::FilesReport;
using onced::engine::Found;
using onced::engine::Patience;
using onced::engine::Session;
using onced::engine::Step;
using onced::engine::Sync;
using onced::engine::View;

namespace {

class SeamSession final : public Session {
public:
  SeamSession(std::unique_ptr<Session> session, const Engine &engine, Seam &seam)
      : session_(std::move(session)), engine_(engine), seam_(seam) {}

  [[nodiscard]] Result<void> read(Family family, std::span<const BytesView> keys, std::vector<Found> &found) override {
    auto read = session_->read(family, keys, found);
    Context &context = seam_.context;
    if (!read || context.calm()) return read;
    for (Found &row : found) {
      if (row.state != Found::State::present || !context.chance.happens(context.plan.late_commit_percent)) continue;
      row = {};
      ++context.tally.late_commits;
    }
    return read;
  }

  void begin(Sync sync) override {
    if (seam_.context.mutated(Mutation::blind_retry)) at_begin_ = engine_.view();
    session_->begin(sync);
  }

  [[nodiscard]] Step lock(Family family, std::span<const BytesView> keys, Patience patience,
                          std::vector<Found> &found) override {
    auto locked = session_->lock(family, keys, patience, found);
    const bool is_stale = seam_.locks_are_stale && family != Family::dead_letters;
    if (!locked || !is_stale || !seam_.before_unknown) return locked;
    for (std::size_t at = 0; at < keys.size(); ++at) {
      const auto value = seam_.before_unknown->get(family, keys[at]);
      found[at] = {};
      if (value && *value) found[at] = {.state = Found::State::present, .value = stale_.emplace_back(**value)};
    }
    return locked;
  }

  [[nodiscard]] Step claim(Family family, std::span<const Claim> claims, Patience patience,
                           std::vector<Found> &found) override {
    auto claimed = session_->claim(family, claims, patience, found);
    if (!claimed || !seam_.context.mutated(Mutation::no_guard)) return claimed;
    for (std::size_t at = 0; at < claims.size(); ++at) {
      if (found[at].state != Found::State::present) continue;
      found[at] = {};
      if (auto put = session_->put(family, claims[at].key, claims[at].value); !put) return put;
    }
    return claimed;
  }

  [[nodiscard]] Step put(Family family, BytesView key, BytesView value) override {
    return session_->put(family, key, value);
  }
  [[nodiscard]] Step erase(Family family, BytesView key) override { return session_->erase(family, key); }
  void add(Counter counter, std::int64_t amount) override {
    if (amount < 0 && seam_.context.mutated(Mutation::lost_sums)) return;
    session_->add(counter, amount);
  }

  [[nodiscard]] Step commit() override {
    auto ended = session_->commit();
    const bool is_unknown = !ended && ended.error().kind == Failure::Kind::unknown;
    if (is_unknown && at_begin_) seam_.before_unknown = std::move(at_begin_);
    return ended;
  }
  void abandon() override { session_->abandon(); }
  [[nodiscard]] Result<void> confirm() override {
    return seam_.context.mutated(Mutation::no_confirm) ? Result<void>() : session_->confirm();
  }

private:
  std::unique_ptr<Session> session_;
  const Engine &engine_;
  Seam &seam_;
  std::unique_ptr<View> at_begin_;
  std::deque<Bytes> stale_;
};

class SeamEngine final : public Engine {
public:
  SeamEngine(std::unique_ptr<Engine> engine, Seam &seam) : engine_(std::move(engine)), seam_(seam) {}

  [[nodiscard]] std::unique_ptr<Session> session() override {
    return std::make_unique<SeamSession>(engine_->session(), *engine_, seam_);
  }
  [[nodiscard]] std::unique_ptr<View> view() const override { return engine_->view(); }
  [[nodiscard]] Result<std::uint64_t> begin_boot(std::uint64_t at_least, onced::Random &random) override {
    return engine_->begin_boot(at_least, random);
  }
  [[nodiscard]] Result<void> health() const override { return engine_->health(); }
  [[nodiscard]] bool is_all_stable() const override { return engine_->is_all_stable(); }
  [[nodiscard]] std::string place() const override { return engine_->place(); }
  [[nodiscard]] std::string identity() const override { return engine_->identity(); }
  [[nodiscard]] std::optional<std::uint64_t> format_found() const override { return engine_->format_found(); }
  [[nodiscard]] bool is_own_row(BytesView name, BytesView value) const override {
    return engine_->is_own_row(name, value);
  }
  [[nodiscard]] Result<FilesReport> verify_files() const override { return engine_->verify_files(); }

private:
  std::unique_ptr<Engine> engine_;
  Seam &seam_;
};

} // namespace

std::unique_ptr<Engine> through_seam(std::unique_ptr<Engine> engine, Seam &seam) {
  return std::make_unique<SeamEngine>(std::move(engine), seam);
}

} // namespace simulation
