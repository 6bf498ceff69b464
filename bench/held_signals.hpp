#pragma once

#include <csignal>

namespace onced::bench {

// SIGINT, SIGTERM and SIGHUP wait while this lives and then take their effect: so the worker's process and directory
// are gone by then. Made before any other thread, which inherit it.
class HeldSignals {
public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals &) = delete;
  HeldSignals &operator=(const HeldSignals &) = delete;

  // One of them waits, so what is under way should end. Always false where none is held. Any thread.
  [[nodiscard]] static bool pending();

private:
  sigset_t before_{};
};

} // namespace onced::bench
