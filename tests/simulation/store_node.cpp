#include "store_node.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/messagepack.hpp"
#include "rules.hpp"
#include "store/opening.hpp"
#include "store/verdict.hpp"

namespace simulation {

using onced::Bytes;
using onced::Outcome;
using onced::engine::Family;
using onced::testing::CrashOf;
using onced::testing::EngineCall;
using onced::testing::EngineFault;
using onced::testing::MemoryDisk;
using onced::testing::MemoryMode;
using Phase = Ledger::Phase;

namespace {

// Large enough for every job, and too small to cost an opening anything.
constexpr std::size_t cache_bytes = std::size_t{16} * 1024;

std::string_view type_of_job(const Job &job) {
  if (is_queued(job.kind)) return runs_as_command(job.key) ? "command" : "function";
  return job.kind == JobKind::refused ? "refused" : "pure";
}

Phase phase_of(onced::Phase phase) {
  if (phase == onced::Phase::pending) return Phase::pending;
  return phase == onced::Phase::failed ? Phase::failed : Phase::committed;
}

} // namespace

StoreNode::StoreNode(Context &context)
    : context_(context), seam_{.context = context, .locks_are_stale = false, .before_unknown = nullptr},
      disk_(MemoryDisk::make({.mode = context.mutated(Mutation::lying_disk) ? MemoryMode::lying
                                      : context.plan.visible_early          ? MemoryMode::visible
                                                                            : MemoryMode::stable})),
      reader_(disk_->open()), ids_(context.seed) {
  disk_->set_faults([this](EngineCall call) { return fault_of(call); });
  add_handlers();
}

void StoreNode::add_handlers() {
  const auto add_inline = [&](const char *type, onced::InlineHandler handler) {
    must(handlers_.add_inline(type, std::move(handler)).has_value(), rules::custody);
  };
  add_inline("pure", [this](const onced::HandlerCall &) {
    return onced::Done{.result = onced::messagepack::encode_number(context_.ledger.next_result())};
  });
  add_inline("refused", [](const onced::HandlerCall &) { return onced::Failed{.detail = "refused"}; });
  for (const char *const name : {"command", "function"}) {
    onced::QueuedType type;
    type.type = name;
    type.handler = onced::QueuedFunction();
    must(handlers_.add_queued(std::move(type)).has_value(), rules::custody);
  }
}

const onced::QueuedType &StoreNode::type_of(std::size_t key) const {
  return *handlers_.queued(runs_as_command(key) ? "command" : "function");
}

std::size_t StoreNode::key_named(const Bytes &name) const {
  const auto found =
      std::find_if(names_.begin(), names_.end(), [&](const onced::Key &key) { return key.bytes == name; });
  return static_cast<std::size_t>(found - names_.begin());
}

// --- Jobs -----------------------------------------------------------------------------------------------------------

Bytes StoreNode::bytes_of(std::size_t index) const {
  const Job &job = context_.jobs[index];
  Bytes bytes;
  onced::messagepack::Writer writer(bytes);
  if (job.kind == JobKind::garbage) {
    writer.integer(static_cast<std::int64_t>(index));
    return bytes;
  }
  writer.map(4);
  writer.string("operation_id").string(std::to_string(index));
  writer.string("effect_key").string(std::to_string(job.key));
  writer.string("type").string(type_of_job(job));
  writer.string("intent").integer(job.intent);
  return bytes;
}

void StoreNode::write_inputs() {
  for (std::size_t key = 0; key < names_.size(); ++key)
    names_[key] = onced::key_of_effect(std::to_string(key));
  onced::JobParser parser;
  for (std::size_t index = 0; index < context_.jobs.size(); ++index) {
    Input &input = inputs_.emplace_back();
    input.bytes = bytes_of(index);
    input.tag = digester_.tag(input.bytes);
    onced::Job job;
    if (!parser.parse(input.bytes, job)) continue;
    onced::assign_key(job, input.key);
    input.digest = digester_.intent(job.type, job.payload);
    input.job = std::move(job);
  }
}

onced::Delivery StoreNode::delivery_of(std::size_t index) const {
  const Input &input = inputs_[index];
  onced::Delivery delivery;
  delivery.bytes = input.bytes;
  delivery.sequence = context_.jobs[index].sequence;
  delivery.issued_at = context_.jobs[index].issued_at;
  delivery.job = input.job ? &*input.job : nullptr;
  delivery.defect = "not_a_map";
  delivery.key = input.job ? &input.key : nullptr;
  delivery.digest = input.digest;
  delivery.tag = input.tag;
  return delivery;
}

// --- The store ------------------------------------------------------------------------------------------------------

bool StoreNode::open() {
  if (inputs_.empty()) write_inputs();
  auto opened = open_over(through_seam(disk_->open(), seam_));
  if (!opened) return false;
  store_ = std::move(*opened);
  boot_ = static_cast<std::uint32_t>(onced::boot_count_of(store_->boot()));
  observe({.kind = Cause::Kind::opening, .token = {}});
  return true;
}

onced::Result<std::unique_ptr<onced::Store>> StoreNode::open_over(std::unique_ptr<onced::engine::Engine> engine) {
  onced::StoreOptions options;
  options.directory = "/dev/null"; // nothing can be in it
  options.committed_cache_bytes = context_.plan.has_cache ? cache_bytes : 0;
  return onced::store::open_over(std::move(engine), options, *this, ids_);
}

void StoreNode::commit_elsewhere(std::size_t job) {
  const auto other = open_over(disk_->open());
  if (!other) return;
  arm(EngineCall::commit, EngineFault::unknown_visible);
  const std::array<onced::Delivery, 1> batch{delivery_of(job)};
  if (!(*other)->commit(batch, handlers_)) ++context_.tally.committed_elsewhere;
  disarm();
}

void StoreNode::crash() {
  store_.reset();
  const CrashOf of = context_.chance.happens(50) ? CrashOf::machine : CrashOf::process;
  disk_->crash(of);
  // What only the process has left behind stays, and is stable by and by.
  if (of == CrashOf::process) must(disk_->open()->session()->confirm().has_value(), rules::custody);
  observe({.kind = Cause::Kind::opening, .token = {}});
}

EngineFault StoreNode::fault_of(EngineCall call) {
  if (armed_ && armed_->first == call) return std::exchange(armed_, std::nullopt)->second;
  const bool can_race = call == EngineCall::lock || call == EngineCall::claim || call == EngineCall::commit;
  if (!can_race || context_.calm() || !context_.chance.happens(context_.plan.race_percent)) return EngineFault::none;
  ++context_.tally.races;
  return EngineFault::retry;
}

std::optional<std::vector<StoreNode::Answer>> StoreNode::commit(std::span<const std::uint8_t> jobs) {
  std::vector<onced::BytesView> asked;
  for (const std::uint8_t index : jobs)
    asked.emplace_back(inputs_[index].bytes);
  std::vector<onced::Recollection> recalled(jobs.size());
  store_->recall(asked, recalled);
  std::vector<onced::Delivery> deliveries;
  for (std::size_t at = 0; at < jobs.size(); ++at)
    if (!recalled[at].committed) deliveries.push_back(delivery_of(jobs[at]));
  const auto settled = store_->commit(deliveries, handlers_);
  if (!settled) return std::nullopt;
  observe({.kind = Cause::Kind::batch, .token = {}});
  std::vector<Answer> answers;
  for (std::size_t at = 0, next = 0; at < jobs.size(); ++at) {
    if (!recalled[at].committed) {
      answers.push_back(answer_of(jobs[at], (*settled)[next++]));
      continue;
    }
    must(recalled[at].tag == inputs_[jobs[at]].tag, rules::tag_fits);
    const auto result = onced::messagepack::decode_number(recalled[at].result).value_or(0);
    answers.push_back({.verdict = {Outcome::duplicate, result}, .is_new_in_queue = false});
  }
  return answers;
}

StoreNode::Answer StoreNode::answer_of(std::size_t index, const onced::Settlement &settlement) {
  const Outcome outcome = settlement.outcome;
  bury_if_written(index, outcome);
  return {.verdict = {outcome, onced::messagepack::decode_number(settlement.result).value_or(0)},
          .is_new_in_queue = outcome == Outcome::accepted && settlement.branch == onced::Branch::absent};
}

// --- What is written ------------------------------------------------------------------------------------------------

void StoreNode::bury_if_written(std::size_t index, Outcome reason) {
  if (has_letter(index, reason)) context_.ledger.bury(index);
}

bool StoreNode::has_letter(std::size_t index, Outcome reason) {
  if (reason != Outcome::conflict && reason != Outcome::invalid && reason != Outcome::failed) return false;
  const Input &input = inputs_[index];
  const auto id =
      onced::store::dead_letter_id(input.job ? &input.key : nullptr, input.digest, input.bytes, reason, digester_);
  const auto letter = reader_->view()->get(Family::dead_letters, id.view());
  return letter && letter->has_value();
}

void StoreNode::observe(const Cause &cause) {
  if (!reader_->is_all_stable() && !context_.mutated(Mutation::lying_disk)) return;
  std::array<Ledger::Row, Ledger::keys_max> rows;
  {
    const auto view = reader_->view();
    for (std::size_t key = 0; key < context_.plan.keys; ++key)
      rows[key] = row_of(*view, key);
  }
  for (std::size_t key = 0; key < context_.plan.keys; ++key) {
    const bool fails = rows[key].phase == Phase::failed && context_.ledger.row(key).phase != Phase::failed;
    if (fails) must(has_letter(rows[key].owner, Outcome::failed), rules::custody);
    if (fails) context_.ledger.bury(rows[key].owner);
    context_.ledger.observe(key, std::move(rows[key]), cause);
  }
}

Ledger::Row StoreNode::row_of(const onced::engine::View &view, std::size_t key) {
  Ledger::Row row;
  auto operation = view.get(Family::operations, names_[key].bytes);
  auto queued = view.get(Family::queue, names_[key].bytes);
  must(operation && queued, rules::custody);
  if (*operation) {
    row.bytes = std::move(**operation);
    const auto record = decoder_.operation(row.bytes);
    must(record.has_value(), rules::custody);
    row.phase = phase_of(record->phase);
    row.owner = std::stoul(std::string(record->operation_id));
    row.intent = context_.jobs[row.owner].intent;
    must(record->digest == inputs_[row.owner].digest, rules::first_intent);
    row.result = onced::messagepack::decode_number(record->result).value_or(0);
  }
  must(queued->has_value() == (row.phase == Phase::pending), rules::custody);
  if (!*queued) return row;
  const auto job = decoder_.queued(**queued);
  must(job.has_value(), rules::custody);
  row.leased = job->state == onced::store::QueueState::leased;
  row.token = job->token;
  row.receives = static_cast<std::uint32_t>(job->receives);
  return row;
}

void StoreNode::check_sums() {
  disk_->set_faults({});
  if (!store_) must(open(), rules::settles);
  const auto counted = store_->count();
  const auto sums = reader_->view()->counters();
  must(counted && sums, rules::sums);
  const auto is = [&](onced::engine::Counter counter, std::uint64_t rows) {
    must((*sums)[counter] == static_cast<std::int64_t>(rows), rules::sums);
  };
  is(onced::engine::Counter::results, counted->results);
  is(onced::engine::Counter::dead_letters, counted->dead_letters);
  is(onced::engine::Counter::queued, counted->pending);
}

} // namespace simulation
