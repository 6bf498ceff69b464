#include "worker/query_threads.hpp"

#include <optional>

#include "base/messagepack.hpp"
#include "wire/messages.hpp"
#include "wire/query.hpp"
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
  const QueryLane lane = lane_of(wire::query_name(request), peer.control);
  std::optional<Query> refused;
  {
    const std::scoped_lock lock(mutex_);
    refused = turns_.put({.peer = std::move(peer), .request = std::move(request), .lane = lane});
  }
  changed_.notify_all();
  if (refused) send_answer(outgoing_, std::move(refused->peer), wire::answer_too_many());
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

Bytes QueryThreads::answer(const Query &query) {
  const std::string name = wire::query_name(query.request);
  const wire::QueryKind kind = wire::kind_of_query(name);
  if (kind != wire::QueryKind::reads && !query.peer.control) return wire::answer_refused(name);
  if (name == "stats") return stats();
  if (kind == wire::QueryKind::changes) return change(query.request);
  const auto asker = query.peer.control ? wire::Asker::directory : wire::Asker::network;
  Bytes answer;
  const auto read = keeper_.read([&](const Store &store) { answer = wire::answer_query(store, query.request, asker); });
  return read ? answer : wire::answer_error(read.error());
}

Bytes QueryThreads::change(BytesView request) {
  const auto store = keeper_.try_lease();
  if (!store) return wire::answer_error(keeper_.why_unavailable());
  std::optional<Error> failure;
  Bytes answer = wire::answer_change(*store, handlers_, request, failure);
  if (failure) keeper_.report(*failure);
  return answer;
}

// Needs no store, so it also says why there is none, and since when.
Bytes QueryThreads::stats() {
  const auto state = keeper_.state();
  Bytes out;
  messagepack::Writer writer(out);
  writer.map(counter_table.size() + outcome_table.size() + 11);
  writer.string("store_available").boolean(state.available).string("boot").string(to_hex(state.boot.view()));
  writer.string("store_state").string(wire::name_of(worker_state_of(state)));
  writer.string("store_openings").positive(state.openings).string("unavailable_cause");
  state.available || !state.cause ? writer.nil() : writer.string(describe(*state.cause));
  writer.string("unavailable_at_us");
  writer.positive(state.available ? 0 : static_cast<std::uint64_t>(state.since.time_since_epoch().count()));
  writer.string("oldest_unacknowledged_ms").positive(static_cast<std::uint64_t>(handover_.oldest_age().count()));
  write_depths(writer);
  write_handlers(writer);
  for (const CounterTraits &counter : counter_table)
    writer.string(counter.name).positive(counters_.*counter.counter);
  for (const OutcomeTraits &outcome : outcome_table)
    writer.string(outcome.name).positive(counters_.came_of(outcome.outcome));
  return out;
}

// Nothing is known of them while there is no store.
void QueryThreads::write_depths(messagepack::Writer &writer) {
  const auto store = keeper_.try_lease();
  const auto write = [&](std::string_view name, std::uint64_t value) {
    writer.string(name);
    store ? writer.positive(value) : writer.nil();
  };
  const auto queued = store ? store->queue().depth() : store::RowAmount{};
  write("queue_jobs", queued.rows);
  write("queue_bytes", queued.bytes);
  write("relay_messages", store ? store->relay().depth().rows : 0);
}

void QueryThreads::write_handlers(messagepack::Writer &writer) {
  const auto states = runner_ != nullptr ? runner_->state() : std::vector<runner::Board::TypeState>();
  writer.string("handlers").map(states.size());
  for (const auto &state : states) {
    writer.string(state.type).map(5);
    writer.string("waiting").positive(state.counters.waiting);
    writer.string("starting").positive(state.counters.starting);
    writer.string("running").positive(state.counters.running);
    writer.string("more_in_store").boolean(state.counters.more_in_store);
    writer.string("oldest_ms");
    state.oldest_age ? writer.positive(static_cast<std::uint64_t>(state.oldest_age->count())) : writer.nil();
  }
}

void QueryThreads::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

} // namespace onced::worker
