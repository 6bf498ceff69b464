#include "line_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace onced::tools {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// Waits until a write of PIPE_BUF bytes does not block. False: the time is over.
bool has_room(int descriptor, SteadyTime deadline) noexcept {
  pollfd ready{descriptor, POLLOUT, 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    const int count = ::poll(&ready, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX)));
    if (count > 0 || (count < 0 && errno != EINTR)) return true; // the write tells what is wrong
    if (left <= 0) return false;
  }
}

// What was written; errno is 0 unless the write failed.
std::size_t write_until(int descriptor, std::string_view text, SteadyTime deadline) noexcept {
  std::size_t written = 0;
  errno = 0;
  while (written < text.size() && has_room(descriptor, deadline)) {
    const auto count =
        ::write(descriptor, text.data() + written, std::min<std::size_t>(text.size() - written, PIPE_BUF));
    if (count > 0) written += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR && errno != EAGAIN) return written;
    errno = 0;
  }
  return written;
}

} // namespace

std::size_t write_within(int descriptor, std::string_view text, std::chrono::milliseconds patience) noexcept {
  return write_until(descriptor, text, std::chrono::steady_clock::now() + patience);
}

void tell_on_stderr(std::string_view text) noexcept {
  write_within(STDERR_FILENO, text, last_words_patience);
}

struct LineQueue::State {
  State(int to, std::function<void(int)> failure) : descriptor(to), on_failure(std::move(failure)) {}

  const int descriptor;
  const std::function<void(int)> on_failure;
  std::mutex mutex; // guards the rest
  std::condition_variable changed;
  std::string waiting;
  bool closed = false;
  bool failed = false;
  bool ended = false; // the thread has

  // The thread.
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return closed || !waiting.empty(); });
      if (waiting.empty()) break;
      const std::string text = std::exchange(waiting, {});
      if (failed) continue;
      lock.unlock();
      const bool whole = write_until(descriptor, text, SteadyTime::max()) == text.size();
      const int failure = errno;
      lock.lock();
      failed = !whole;
      const bool has_owner = !closed; // whoever is told may be gone after that
      if (failed && has_owner && on_failure) {
        lock.unlock();
        on_failure(failure);
        lock.lock();
      }
    }
    ended = true;
    changed.notify_all();
  }
};

LineQueue::LineQueue(int descriptor, std::function<void(int)> on_failure)
    : state_(std::make_shared<State>(descriptor, std::move(on_failure))) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([state = state_] { state->run(); }).detach();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LineQueue::~LineQueue() {
  close();
}

bool LineQueue::put(std::string_view line) {
  const std::scoped_lock lock(state_->mutex);
  if (state_->closed || state_->waiting.size() + line.size() > line_queue_bytes_max) return false;
  state_->waiting += line;
  state_->changed.notify_all();
  return true;
}

bool LineQueue::close(std::chrono::milliseconds patience) noexcept {
  std::unique_lock lock(state_->mutex);
  state_->closed = true;
  state_->changed.notify_all();
  return state_->changed.wait_for(lock, patience, [this] { return state_->ended; }) && !state_->failed;
}

} // namespace onced::tools
