#include "worker/query_threads.hpp"

#include <optional>

#include "admin/queries.hpp"
#include "store/job_queue.hpp"
#include "store/relay_queue.hpp"
#include "wire/messages.hpp"
#include "worker/worker_state.hpp"

namespace onced::worker {
namespace {

void send_answer(Outgoing &outgoing, PeerAddress peer, BytesView body) {
  std::vector<OutgoingFrame> frames;
  frames.push_back({std::move(peer), wire::encode_answer(body)});
  outgoing.put(std::move(frames));
}

} // namespace

void QueryThreads::ask(PeerAddress peer, Bytes request) {
  const QueryLane lane = lane_of(admin::query_name(request), peer.control);
  std::optional<Query> refused;
  {
    const std::scoped_lock lock(mutex_);
    refused = turns_.put({.peer = std::move(peer), .request = std::move(request), .lane = lane});
  }
  changed_.notify_all();
  if (refused) send_answer(outgoing_, std::move(refused->peer), admin::answer_too_many());
}

void QueryThreads::run(QueryLane lane) {
  while (true) {
    std::optional<Query> query;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closed_ || (query = turns_.take(lane)); });
      if (closed_) return;
    }
    send_answer(outgoing_, query->peer, answer(*query));
    {
      const std::scoped_lock lock(mutex_);
      turns_.done(query->peer);
    }
    changed_.notify_all(); // the connection's next query may be another lane's
  }
}

Bytes QueryThreads::answer(const Query &asked) {
  const std::string name = admin::query_name(asked.request);
  const admin::Query *query = admin::find_query(name);
  if (query != nullptr && query->right == admin::Right::operate && !asked.peer.control) {
    return admin::answer_refused(name);
  }
  if (name == "stats") return stats();
  if (query != nullptr && query->changes()) return change(asked.request);
  const auto asker = asked.peer.control ? admin::Asker::directory : admin::Asker::network;
  Bytes answer;
  const auto read =
      keeper_.read([&](const Store &store) { answer = admin::answer_query(store, asked.request, asker); });
  return read ? answer : admin::answer_error(read.error());
}

Bytes QueryThreads::change(BytesView request) {
  const auto store = keeper_.try_lease();
  if (!store) return admin::answer_error(keeper_.why_unavailable());
  std::optional<Error> failure;
  Bytes answer = admin::answer_change(*store, handlers_, request, failure);
  if (failure) keeper_.report(*failure);
  return answer;
}

// Needs no store, so it also says why there is none, and since when.
Bytes QueryThreads::stats() {
  const auto state = keeper_.state();
  admin::MapWriter answer;
  answer.boolean("store_available", state.available);
  answer.string("boot", to_hex(state.boot.view()));
  answer.string("store_state", wire::name_of(worker_state_of(state)));
  answer.number("store_openings", state.openings);
  answer.text("unavailable_cause", state.available || !state.cause ? std::string() : describe(*state.cause));
  answer.time("unavailable_at_us", state.available ? WallTime{} : state.since);
  answer.number("oldest_unacknowledged_ms", static_cast<std::uint64_t>(handover_.oldest_age().count()));
  write_depths(answer);
  answer.number("relay_unknown_destinations", counters_.relay_unknown_destinations);
  write_handlers(answer);
  for (const CounterTraits &counter : counter_table)
    answer.number(counter.name, counters_.*counter.counter);
  for (const OutcomeTraits &outcome : outcome_table)
    answer.number(outcome.name, counters_.came_of(outcome.outcome));
  return answer.bytes();
}

// Nothing is known of them while there is no store.
void QueryThreads::write_depths(admin::MapWriter &answer) {
  const auto store = keeper_.try_lease();
  const auto write = [&](std::string_view name, std::uint64_t value) {
    store ? answer.entry(name).positive(value) : answer.entry(name).nil();
  };
  const auto queued = store ? store->queue().depth() : store::RowAmount{};
  write("queue_jobs", queued.rows);
  write("queue_bytes", queued.bytes);
  write("relay_messages", store ? store->relay().depth().rows : 0);
}

void QueryThreads::write_handlers(admin::MapWriter &answer) {
  admin::MapWriter types;
  for (const auto &state : schedule_.state()) {
    admin::MapWriter type;
    type.number("waiting", state.counters.waiting);
    type.number("starting", state.counters.starting);
    type.number("running", state.counters.running);
    type.boolean("more_in_store", state.counters.more_in_store);
    state.oldest_age ? type.number("oldest_ms", static_cast<std::uint64_t>(state.oldest_age->count()))
                     : type.text("oldest_ms", {});
    types.map(state.type, type);
  }
  answer.map("handlers", types);
}

void QueryThreads::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

} // namespace onced::worker
