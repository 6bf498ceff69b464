#pragma once

#include <stdexcept>

namespace onced::rehearsal {

// A scenario cannot go on: a process that cannot be started, or does not do in time what is waited for.
class StageFailure : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// A scenario cannot be played here. Says why.
class StageUnavailable : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// The whole rehearsal is to end.
class Interrupted : public std::runtime_error {
public:
  Interrupted() : std::runtime_error("interrupted") {}
};

} // namespace onced::rehearsal
