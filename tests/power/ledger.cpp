#include "power/ledger.hpp"

#include <stdexcept>

namespace onced::testing {

void Ledger::add(const std::string &name) {
  const std::scoped_lock lock(mutex_);
  names_.insert(name);
  changed_.notify_all();
}

void Ledger::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Ledger::wait_for(std::size_t promises) {
  std::unique_lock lock(mutex_);
  while (names_.size() < promises && !closed_) {
    const std::size_t before = names_.size();
    const bool moved = changed_.wait_for(lock, patience, [&] { return names_.size() > before || closed_; });
    if (!moved) throw std::runtime_error("no acknowledgement came for too long");
  }
}

std::set<std::string> Ledger::names() const {
  const std::scoped_lock lock(mutex_);
  return names_;
}

SendRun::SendRun(const Arguments &arguments, const std::string &input, const Fates &fates, Ledger &ledger)
    : process_({.arguments = arguments, .input = input}), reader_([this, &fates, &ledger] {
        while (const auto text = process_.next_line()) {
          const auto [name, fate] = fate_in(Line(*text));
          const auto expected = fates.find(name);
          if (expected == fates.end() || expected->second != fate)
            throw std::runtime_error("a false verdict: " + *text);
          ledger.add(name);
        }
      }) {}

ExitStatus SendRun::finish() {
  reader_.finish();
  return process_.wait();
}

void SendRun::end() {
  process_.signal(SIGKILL);
  static_cast<void>(finish());
}

} // namespace onced::testing
