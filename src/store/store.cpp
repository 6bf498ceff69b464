#include "onced/store.hpp"

#include "onced/version.hpp"
#include "store/batch_commit.hpp"
#include "store/context.hpp"
#include "store/job_queue.hpp"
#include "store/opening.hpp"
#include "store/operator_changes.hpp"
#include "store/pool.hpp"
#include "store/reading.hpp"
#include "store/relay_queue.hpp"
#include "store/verifier.hpp"

// A page of contents: where each call of a store is answered.
//   open                       opening.cpp           verify             verifier.cpp
//   commit                     batch_commit.cpp      get, count, list   reading.cpp
//   redrive, purge, resolve    operator_changes.cpp  recall             cache/committed_cache.cpp
//   queue                      job_queue.cpp         relay              relay_queue.cpp
// All that is written goes through unit_of_work.cpp, the only place that commits.
namespace onced {

class Store::Impl {
public:
  Impl(std::unique_ptr<engine::Engine> engine, const StoreOptions &options, Clock &clock)
      : engine_(std::move(engine)), context_(options, clock, *engine_), queue_(context_, units_),
        relay_(context_, units_) {}

  [[nodiscard]] Result<void> begin(Random &random) {
    store::Opened opened;
    if (!context_.options.read_only) {
      auto begun = store::begin_boot(context_, random);
      if (!begun) return tl::unexpected(begun.error());
      opened = *begun;
    }
    boot_ = opened.boot;
    changes_ = std::make_unique<store::OperatorChanges>(context_, opened.audit);
    return {};
  }

  [[nodiscard]] Result<std::vector<Settlement>> commit(std::span<const Delivery> batch, const Handlers &handlers);
  std::unique_ptr<engine::Engine> engine_;
  store::StoreContext context_;
  store::Pool<store::BatchCommit> batches_;
  store::Pool<store::UnitOfWork> units_;
  store::JobQueue queue_;
  store::RelayQueue relay_;
  std::unique_ptr<store::OperatorChanges> changes_;
  BootId boot_;

private:
  void tell_queued(std::span<const Delivery> batch, std::span<const Settlement> settled) const;
};

Result<std::vector<Settlement>> Store::Impl::commit(std::span<const Delivery> batch, const Handlers &handlers) {
  if (auto open = context_.gate.check(); !open) return tl::unexpected(open.error());
  const auto commit = batches_.take(context_);
  auto settled = commit->commit(batch, handlers);
  if (!settled) context_.gate.close(settled.error());
  if (settled && context_.options.observer != nullptr) tell_queued(batch, *settled);
  return settled;
}

// Of the jobs that this batch has put into the queue.
void Store::Impl::tell_queued(std::span<const Delivery> batch, std::span<const Settlement> settled) const {
  for (std::size_t at = 0; at < batch.size(); ++at) {
    if (settled[at].outcome != Outcome::accepted || settled[at].branch != Branch::absent) continue;
    context_.options.observer->queued(batch[at].key->bytes, batch[at].job->type, context_.clock.wall());
  }
}

Result<std::unique_ptr<Store>> store::open_over(std::unique_ptr<engine::Engine> engine, const StoreOptions &options,
                                                Clock &clock, Random &random) {
  auto impl = std::make_unique<Store::Impl>(std::move(engine), options, clock);
  if (auto begun = impl->begin(random); !begun) return tl::unexpected(begun.error());
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

// --- The worker's part ----------------------------------------------------------------------------------------------

Result<std::vector<Settlement>> Store::commit(std::span<const Delivery> batch, const Handlers &handlers) {
  return impl_->commit(batch, handlers);
}
void Store::recall(std::span<const BytesView> jobs, std::span<Recollection> recollections) const {
  impl_->context_.cache.recall(jobs, recollections);
}
store::JobQueue &Store::queue() {
  return impl_->queue_;
}
const store::JobQueue &Store::queue() const {
  return impl_->queue_;
}
store::RelayQueue &Store::relay() {
  return impl_->relay_;
}
const store::RelayQueue &Store::relay() const {
  return impl_->relay_;
}

// --- Reading --------------------------------------------------------------------------------------------------------

bool Store::reads_durable() const {
  return impl_->engine_->is_all_stable();
}
Result<std::optional<OperationRow>> Store::get(const Key &key) const {
  return store::read_operation(*impl_->engine_, key);
}
Result<Counts> Store::count() const {
  return store::count_rows(*impl_->engine_);
}
Result<std::vector<DeadLetter>> Store::dead_letters(std::size_t rows, const std::optional<DeadLetterId> &after) const {
  auto page = store::find_letters(*impl_->engine_, rows, after, {}, rows);
  if (!page) return tl::unexpected(page.error());
  return std::move(page->letters);
}
Result<DeadLetterPage> Store::find_dead_letters(std::size_t rows, const std::optional<DeadLetterId> &after,
                                                const DeadLetterFilter &filter) const {
  return store::find_letters(*impl_->engine_, rows, after, filter, limits::dead_letters_scanned_max);
}
Result<std::optional<DeadLetter>> Store::dead_letter(const DeadLetterId &id) const {
  return store::read_letter(*impl_->engine_, id);
}
Result<std::vector<AuditRow>> Store::audit(std::size_t rows, std::uint64_t after) const {
  return store::read_audit(*impl_->engine_, rows, after);
}
Result<Verification> Store::verify() const {
  return store::Verifier(*impl_->engine_).verify();
}
HandlerCrashes Store::handler_crashes() const {
  return impl_->context_.suspects.crashes();
}
BootId Store::boot() const {
  return impl_->boot_;
}
Durability Store::durability() const {
  return impl_->context_.options.durability;
}
std::optional<Upgrade> Store::upgrade() const {
  const auto found = impl_->engine_->format_found();
  if (!found || *found == disk_format || impl_->context_.options.read_only) return std::nullopt;
  return Upgrade{.from = *found, .to = disk_format, .identity = impl_->engine_->identity()};
}

// --- Changes that a person orders -----------------------------------------------------------------------------------

Result<Redriven> Store::redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who) {
  return impl_->changes_->redrive(id, handlers, who);
}
Result<void> Store::purge(const DeadLetterId &id, const Operator &who) {
  return impl_->changes_->purge(id, who);
}
Result<void> Store::resolve(const Key &key, const std::optional<Bytes> &applied_result, const Operator &who) {
  return impl_->changes_->resolve(key, applied_result, who);
}

} // namespace onced
