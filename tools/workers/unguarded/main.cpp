// A worker with the guard left out: the control of a rehearsal, which must show double effects where onced shows none.
// It speaks docs/protocol.md and appends each effect to a ledger, where a second one is a second line. `--guard memory`
// keeps the keys that it has seen in memory, so a restart forgets them; `--guard check-then-insert` looks into the
// ledger and then appends, so two threads may both find nothing. Never for service.
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "onced/digest.hpp"
#include "onced/job.hpp"
#include "wire/messages.hpp"
#include "wire/sockets.hpp"

namespace onced::unguarded {
namespace {

// How long a race waits for its other side.
constexpr std::chrono::seconds race_patience{10};
constexpr std::chrono::milliseconds turn{5};

struct Options {
  std::filesystem::path data;
  std::string jobs;
  std::string replies;
  bool in_memory = false;
  bool waits = false; // after each effect it says so, and waits for a line
  bool counts = false;
};

std::filesystem::path ledger_in(const std::filesystem::path &data) {
  return data / "ledger";
}

std::vector<std::string> lines_of(const std::filesystem::path &ledger) {
  std::ifstream file(ledger);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

void append(const std::filesystem::path &ledger, const std::string &line) {
  const int file = ::open(ledger.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fdatasync(file) != 0) {
    throw std::runtime_error("the ledger cannot be written");
  }
  ::close(file);
}

// Effects, and what passes for a guard.
class Ledger {
public:
  explicit Ledger(const Options &options) : options_(options), file_(ledger_in(options.data)) {}

  // Which of these keys are new, as far as it knows.
  std::set<std::string> look(const std::vector<std::string> &keys) {
    const std::scoped_lock lock(mutex_);
    std::set<std::string> fresh(keys.begin(), keys.end());
    if (!options_.in_memory) {
      for (const std::string &line : lines_of(file_))
        fresh.erase(line);
      ++looks_;
      looked_.notify_all();
      return fresh;
    }
    std::erase_if(fresh, [this](const std::string &key) { return !seen_.insert(key).second; });
    return fresh;
  }

  // Between a look and its insertions: whoever races with it looks too.
  void await_another_look() {
    std::unique_lock lock(mutex_);
    if (!options_.in_memory) looked_.wait_for(lock, race_patience, [this] { return looks_ >= 2; });
  }

  void insert(const std::string &key, const std::string &operation_id) {
    const std::scoped_lock lock(mutex_);
    append(file_, key);
    if (!options_.waits) return;
    fmt::print("committed {}\n", operation_id);
    std::fflush(stdout);
    std::string line;
    std::getline(std::cin, line);
  }

private:
  const Options &options_;
  std::filesystem::path file_;
  std::mutex mutex_; // guards the rest, but not what lies between a look and an insertion
  std::condition_variable looked_;
  std::set<std::string> seen_;
  unsigned looks_ = 0;
};

struct Entry {
  Sequence sequence{0};
  Tag tag;
  std::string key; // empty: no job
  std::string operation_id;
};

class Worker {
public:
  explicit Worker(const Options &options) : ledger_(options) {
    boot_.bytes[0] = static_cast<std::uint8_t>(::getpid());
    boot_.bytes[1] = static_cast<std::uint8_t>(::getpid() / 256);
  }

  [[noreturn]] void run(zmq::socket_t jobs, zmq::socket_t replies) {
    for (;;) {
      zmq::message_t message;
      jobs.set(zmq::sockopt::rcvtimeo, static_cast<int>(turn.count()));
      if (jobs.recv(message)) take(message.to_string_view());
      while (greet_one(replies)) {
      }
      send_ready(replies);
    }
  }

private:
  bool greet_one(zmq::socket_t &replies) {
    zmq::message_t routing_id;
    zmq::message_t frame;
    if (!replies.recv(routing_id, zmq::recv_flags::dontwait)) return false;
    static_cast<void>(replies.recv(frame));
    wire::PeerMessage peer;
    if (wire::decode_peer_message(frame.to_string_view(), peer) != wire::PeerFraming::known || peer.request)
      return true;
    routes_[peer.sender] = routing_id.to_string();
    send(replies, peer.sender, wire::encode_greeting(boot_, Durability::fsync));
    return true;
  }

  // Each batch has a thread of its own.
  void take(BytesView message) {
    wire::Batch batch;
    if (wire::decode_batch(message, batch) != wire::Framing::batch) return;
    JobParser parser;
    std::vector<Entry> entries;
    entries.reserve(batch.entries.size());
    for (const wire::BatchEntry &one : batch.entries) {
      Job job;
      Entry entry{.sequence = one.sequence, .tag = one.tag, .key = "", .operation_id = ""};
      if (parser.parse(one.job, job)) {
        Key key;
        assign_key(job, key);
        entry.key = to_hex(key.bytes);
        entry.operation_id = job.operation_id;
      }
      entries.push_back(entry);
    }
    std::thread([this, sender = batch.sender, entries = std::move(entries)] { settle(sender, entries); }).detach();
  }

  void settle(const SenderId &sender, const std::vector<Entry> &entries) {
    std::vector<std::string> keys;
    for (const Entry &entry : entries) {
      if (!entry.key.empty()) keys.push_back(entry.key);
    }
    std::set<std::string> fresh = ledger_.look(keys);
    ledger_.await_another_look();
    wire::RepliesEncoder encoder(boot_, Durability::fsync);
    for (const Entry &entry : entries) {
      const bool is_new = fresh.erase(entry.key) == 1;
      if (is_new) ledger_.insert(entry.key, entry.operation_id);
      const Outcome done = is_new ? Outcome::stored : Outcome::duplicate;
      encoder.add({.sequence = entry.sequence,
                   .tag = entry.tag,
                   .outcome = entry.key.empty() ? Outcome::invalid : done,
                   .result = entry.key.empty() ? BytesView() : BytesView("\xc0"),
                   .detail = {}});
    }
    const std::scoped_lock lock(mutex_);
    for (Bytes &frame : encoder.take())
      ready_.emplace_back(sender, std::move(frame));
  }

  void send_ready(zmq::socket_t &replies) {
    std::vector<std::pair<SenderId, Bytes>> ready;
    {
      const std::scoped_lock lock(mutex_);
      ready.swap(ready_);
    }
    for (const auto &[sender, frame] : ready)
      send(replies, sender, frame);
  }

  void send(zmq::socket_t &replies, const SenderId &sender, const Bytes &frame) {
    const std::string &route = routes_[sender];
    if (route.empty()) return; // it asks again
    try {
      replies.send(zmq::buffer(route), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
      replies.send(zmq::buffer(frame), zmq::send_flags::dontwait);
    } catch (const zmq::error_t &) { // it is gone
    }
  }

  Ledger ledger_;
  BootId boot_;
  std::map<SenderId, std::string> routes_; // the thread of `run` only
  std::mutex mutex_;                       // guards the next
  std::vector<std::pair<SenderId, Bytes>> ready_;
};

int usage() {
  fmt::print(stderr, "usage: onced-unguarded --data DIR --jobs ENDPOINT --replies ENDPOINT --guard "
                     "memory|check-then-insert [--wait]\n       onced-unguarded --data DIR --count\n");
  return 64;
}

int run(const std::vector<std::string> &words) {
  Options options;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto value = [&] { return at + 1 < words.size() ? words[++at] : std::string(); };
    if (words[at] == "--data") {
      options.data = value();
    } else if (words[at] == "--jobs") {
      options.jobs = value();
    } else if (words[at] == "--replies") {
      options.replies = value();
    } else if (words[at] == "--guard") {
      const std::string guard = value();
      if (guard != "memory" && guard != "check-then-insert") return usage();
      options.in_memory = guard == "memory";
    } else if (words[at] == "--wait") {
      options.waits = true;
    } else if (words[at] == "--count") {
      options.counts = true;
    } else {
      return usage();
    }
  }
  if (options.data.empty()) return usage();
  if (options.counts) {
    fmt::print("{{\"results\":{}}}\n", lines_of(ledger_in(options.data)).size());
    return 0;
  }
  std::filesystem::create_directories(options.data);
  zmq::context_t context;
  auto replies = wire::bind_replies(context, options.replies);
  auto jobs = wire::bind_jobs(context, options.jobs);
  if (!replies || !jobs) return usage();
  // It has nothing to lose in a drain.
  std::signal(SIGTERM, [](int) { ::_exit(0); });
  Worker(options).run(std::move(*jobs), std::move(*replies));
}

} // namespace
} // namespace onced::unguarded

int main(int argc, char **argv) {
  try {
    return onced::unguarded::run({argv + 1, argv + argc});
  } catch (const std::exception &failure) {
    std::fputs(failure.what(), stderr);
    return 74;
  }
}
