#include "store/mend.hpp"

#include <optional>

#include "store/row_changes.hpp"

namespace onced::store {
namespace {

using engine::Family;

// Goes through a family and mends what does not agree, in units that go out as they become many. The sums are counted
// anew afterwards.
class Mending {
public:
  explicit Mending(StoreContext &context) : context_(context), unit_(context) {}

  [[nodiscard]] Result<void> mend_queued_jobs() { return mend_each(Family::queue, &Mending::mend_queued_job); }
  [[nodiscard]] Result<void> mend_keys() { return mend_each(Family::operations, &Mending::mend_key); }
  [[nodiscard]] Result<void> mend_messages() { return mend_each(Family::relay, &Mending::mend_message); }

private:
  struct Change {
    Family family;
    Bytes key;
    std::optional<Bytes> value; // nothing: the row is erased
  };
  // What is wrong with a row, as a change; nothing where it agrees.
  using Mend = Result<std::optional<Change>> (Mending::*)(BytesView key, BytesView value);

  [[nodiscard]] Result<void> mend_each(Family family, Mend mend);
  [[nodiscard]] Result<std::optional<Change>> mend_queued_job(BytesView key, BytesView value);
  [[nodiscard]] Result<std::optional<Change>> mend_key(BytesView key, BytesView value);
  [[nodiscard]] Result<std::optional<Change>> mend_message(BytesView key, BytesView value);
  [[nodiscard]] Result<void> write();

  StoreContext &context_;
  UnitOfWork unit_;
  std::unique_ptr<engine::View> view_;
  RecordDecoder decoder_;
  JobParser parser_;
  Digester digester_;
  std::vector<Change> changes_;
};

Result<void> Mending::mend_each(Family family, Mend mend) {
  constexpr std::size_t changes_max = 1024;
  view_ = context_.engine.view();
  Result<void> failed;
  auto scanned = view_->scan({.family = family}, [&](BytesView key, BytesView value) {
    auto change = (this->*mend)(key, value);
    if (!change) failed = tl::unexpected(change.error());
    if (change && *change) changes_.push_back(std::move(**change));
    if (failed && changes_.size() >= changes_max) failed = write();
    return failed.has_value();
  });
  if (!failed) return failed;
  if (!scanned) return scanned;
  return write();
}

Result<std::optional<Mending::Change>> Mending::mend_queued_job(BytesView key, BytesView value) {
  const auto row = decoder_.queued(value);
  if (!row) return std::nullopt;
  const auto found = view_->get(Family::operations, key);
  if (!found) return tl::unexpected(found.error());
  if (*found) {
    const auto operation = decoder_.operation(**found);
    if (!operation || operation->phase == Phase::pending) return std::nullopt;
    return Change{.family = Family::queue, .key = Bytes(key), .value = std::nullopt};
  }
  Job job;
  if (!parser_.parse(row->bytes, job)) return std::nullopt;
  const Digest digest = digester_.intent(job.type, job.payload);
  Bytes encoded;
  encode_operation(operation_record(Phase::pending, *row, digest, {}, context_.clock.wall()), encoded);
  return Change{.family = Family::operations, .key = Bytes(key), .value = std::move(encoded)};
}

Result<std::optional<Mending::Change>> Mending::mend_key(BytesView key, BytesView value) {
  const auto operation = decoder_.operation(value);
  if (!operation || operation->phase == Phase::committed) return std::nullopt;
  const bool pending = operation->phase == Phase::pending;
  const DeadLetterId id = dead_letter_id(Key{Bytes(key)}, operation->digest, Outcome::failed, digester_);
  const auto found = pending ? view_->get(Family::queue, key) : view_->get(Family::dead_letters, id.view());
  if (!found) return tl::unexpected(found.error());
  if (*found) return std::nullopt;
  return Change{.family = Family::operations, .key = Bytes(key), .value = std::nullopt};
}

// A message whose parent was lost is lost with it, as they were written: done once more, the parent sends it on anew.
Result<std::optional<Mending::Change>> Mending::mend_message(BytesView key, BytesView) {
  const auto parts = relay_key_of(key);
  if (!parts) return std::nullopt;
  const auto found = view_->get(Family::operations, parts->parent);
  if (!found) return tl::unexpected(found.error());
  const auto parent = *found ? decoder_.operation(**found) : std::nullopt;
  const bool lost = !*found || (parent && parent->phase != Phase::committed);
  if (!lost) return std::nullopt;
  return Change{.family = Family::relay, .key = Bytes(key), .value = std::nullopt};
}

Result<void> Mending::write() {
  if (changes_.empty()) return {};
  const auto ended = unit_.run({}, [&] {
    for (const Change &change : changes_)
      change.value ? unit_.put(change.family, change.key, *change.value) : unit_.erase(change.family, change.key);
    return true;
  });
  changes_.clear();
  if (!ended) return tl::unexpected(ended.error());
  return {};
}

} // namespace

Result<void> mend_queue(StoreContext &context) {
  Mending mending(context);
  if (auto mended = mending.mend_queued_jobs(); !mended) return mended;
  if (auto mended = mending.mend_keys(); !mended) return mended;
  return mending.mend_messages();
}

} // namespace onced::store
