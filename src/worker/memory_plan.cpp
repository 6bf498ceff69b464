#include "worker/memory_plan.hpp"

#include <algorithm>
#include <string>

#include "onced/limits.hpp"

namespace onced::worker {
namespace {

constexpr std::size_t mebibyte = 1024 * 1024;

// What depends neither on the senders nor on the memory there is.
std::size_t fixed_bytes(const Threads &threads) {
  return limits::process_bytes + limits::handover_bytes_max + 2 * limits::outgoing_bytes_max +
         threads.batch * limits::worker_thread_bytes + (threads.executors > 0 ? limits::command_conversion_bytes : 0) +
         threads.executors * limits::executor_bytes + threads.relays * limits::relay_target_bytes;
}

std::size_t block_cache_bytes(std::size_t memory_bytes) {
  return std::max(memory_bytes / 8, limits::block_cache_bytes_min);
}

std::size_t committed_cache_bytes(std::size_t memory_bytes) {
  return memory_bytes / 16;
}

// The least memory of which so much is left beside the caches.
std::size_t memory_with_caches(std::size_t bytes) {
  return std::max((bytes + limits::block_cache_bytes_min) / 15 * 16, bytes / 13 * 16);
}

// What one sender may make the worker hold, beside messages of jobs: the replies and answers that it does not read.
constexpr std::size_t replies_bytes = limits::unread_bytes_max;
// And at least, with one message of jobs that waits, and one that is arriving.
constexpr std::size_t sender_bytes = replies_bytes + 2 * limits::message_bytes_max;

std::string in_mebibytes(std::size_t bytes) {
  return std::to_string(bytes / mebibyte) + " MiB";
}

Error too_little(std::size_t memory_bytes, unsigned senders, const Threads &threads, std::size_t needed_bytes) {
  const std::size_t for_handlers =
      threads.executors == 0 ? 0 : threads.executors * limits::executor_bytes + limits::command_conversion_bytes;
  return {.code = ErrorCode::usage,
          .concerns = "memory",
          .cause = in_mebibytes(memory_bytes) + " are too little, of which " + std::to_string(senders) +
                   " senders need " + in_mebibytes(senders * sender_bytes) + ", " + std::to_string(threads.batch) +
                   " worker threads " + in_mebibytes(threads.batch * limits::worker_thread_bytes) + ", " +
                   std::to_string(threads.executors) + " handlers at once " + in_mebibytes(for_handlers) + " and " +
                   std::to_string(threads.relays) + " relays " +
                   in_mebibytes(threads.relays * limits::relay_target_bytes),
          .remedy = "give " + std::to_string(needed_bytes / mebibyte + 1) +
                    " MiB or more (--memory), or lower --senders, --workers, the concurrency of handlers or the "
                    "number of relays"};
}

} // namespace

Result<MemoryPlan> plan_memory(std::size_t memory_bytes, unsigned senders, const Threads &threads) {
  const std::size_t least = fixed_bytes(threads) + senders * sender_bytes;
  const std::size_t caches = block_cache_bytes(memory_bytes) + committed_cache_bytes(memory_bytes);
  if (memory_bytes < least + caches) {
    return tl::unexpected(too_little(memory_bytes, senders, threads, memory_with_caches(least)));
  }
  const std::size_t left = memory_bytes - caches - fixed_bytes(threads);
  const std::size_t waiting = senders == 0 ? limits::receive_high_water_messages_max
                                           : (left / senders - replies_bytes) / limits::message_bytes_max - 1;
  return MemoryPlan{.committed_cache_bytes = committed_cache_bytes(memory_bytes),
                    .block_cache_bytes = block_cache_bytes(memory_bytes),
                    .receive_high_water_messages =
                        static_cast<int>(std::min<std::size_t>(waiting, limits::receive_high_water_messages_max))};
}

} // namespace onced::worker
