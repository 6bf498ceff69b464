#include "worker/query_thread.hpp"

#include "onced/limits.hpp"
#include "wire/messages.hpp"
#include "wire/query.hpp"

namespace onced::worker {
namespace {

void answer(Outgoing &outgoing, PeerAddress peer, BytesView body) {
  std::vector<OutgoingFrame> frames;
  frames.push_back({std::move(peer), wire::encode_answer(body)});
  outgoing.put(std::move(frames));
}

} // namespace

void QueryThread::ask(PeerAddress peer, Bytes request) {
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() < limits::queries_waiting_max) {
      waiting_.push_back({.peer = std::move(peer), .request = std::move(request)});
      changed_.notify_one();
      return;
    }
  }
  answer(outgoing_, std::move(peer),
         wire::answer_error({.code = ErrorCode::timed_out,
                             .concerns = "query",
                             .cause = "too many queries are waiting",
                             .remedy = "ask again later"}));
}

void QueryThread::run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    if (closed_) return;
    Query query = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    answer(outgoing_, std::move(query.peer), wire::answer_query(store_, query.request));
  }
}

void QueryThread::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

} // namespace onced::worker
