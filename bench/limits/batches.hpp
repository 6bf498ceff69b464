#pragma once

#include <cstddef>
#include <functional>

#include "limit.hpp"

namespace onced::bench::limits {

// Does one batch, by its number.
using BatchWork = std::function<void(std::size_t)>;

// Runs every batch once, in order of their start, each thread taking the next when it has done one, and times them.
// `make_work` is called for each thread before the clock starts, by this one. Throws what a batch threw, and
// std::runtime_error when a signal waits.
[[nodiscard]] Measured time_batches(std::size_t batches, unsigned threads, const std::function<BatchWork()> &make_work);

} // namespace onced::bench::limits
