#include "resources.hpp"

#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>

#include "line_queue.hpp"

namespace onced::tools {
namespace {

constexpr std::size_t mebibyte = 1024 * 1024;

// Threads that do nothing but be there.
class IdleThreads {
public:
  IdleThreads() = default;
  ~IdleThreads() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    for (std::thread &thread : threads_)
      thread.join();
  }
  IdleThreads(const IdleThreads &) = delete;
  IdleThreads &operator=(const IdleThreads &) = delete;

  // How many there are; at most so many.
  std::size_t start(unsigned count) {
    try {
      threads_.reserve(count);
      while (threads_.size() < count)
        threads_.emplace_back([this] {
          std::unique_lock lock(mutex_);
          ended_.wait(lock, [this] { return over_; });
        });
    } catch (const std::system_error &) { // there are no more
    } catch (const std::bad_alloc &) {    // nor memory for them
    }
    return threads_.size();
  }

private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

tl::expected<std::uint64_t, std::string> take_descriptors(std::uint64_t needed) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return needed;
  const std::uint64_t given = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
  static_cast<void>(::getrlimit(RLIMIT_NOFILE, &limit));
  if (limit.rlim_cur >= needed) return given;
  return tl::unexpected("the limit of open files: this process may open only " + std::to_string(limit.rlim_cur) +
                        "; raise it to " + std::to_string(needed) + " or more (ulimit -n, LimitNOFILE=)");
}

tl::expected<void, std::string> try_memory(std::size_t bytes) {
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return tl::unexpected("memory: this process cannot have " + std::to_string(bytes / mebibyte) +
                          " MiB; raise its limits (ulimit -v and -d), or let it use less (serve --memory)");
  }
  ::munmap(memory, bytes);
  return {};
}

} // namespace

tl::expected<std::uint64_t, std::string> take_resources(const Needs &needs) {
  auto given = take_descriptors(needs.descriptors);
  if (!given) return given;
  IdleThreads idle;
  if (const std::size_t started = idle.start(needs.threads); started < needs.threads) {
    return tl::unexpected("threads: this process can have only " + std::to_string(started) + " of " +
                          std::to_string(needs.threads) +
                          " more; raise its limits (ulimit -u and -v, TasksMax=, pids.max)");
  }
  // While the threads have their stacks.
  if (const auto tried = try_memory(needs.memory_bytes); !tried) return tl::unexpected(tried.error());
  return given;
}

ExitCode lacking(std::string_view what) noexcept {
  tell_on_stderr("onced: ");
  tell_on_stderr(what);
  tell_on_stderr("\n");
  return ExitCode::os_error;
}

} // namespace onced::tools
