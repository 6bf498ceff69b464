#include "registration.hpp"

#include <exception>
#include <utility>

namespace onced::bench::micro {
namespace {

class Registered final : public benchmark::internal::Benchmark {
public:
  Registered(const std::string &name, std::function<void(benchmark::State &)> run)
      : Benchmark(name.c_str()), run_(std::move(run)) {}
  void Run(benchmark::State &state) override { run_(state); }

private:
  std::function<void(benchmark::State &)> run_;
};

} // namespace

benchmark::internal::Benchmark *Registry::add(const std::string &name, std::function<void(benchmark::State &)> run) {
  auto *registered = new Registered(name, [this, run = std::move(run)](benchmark::State &state) {
    try {
      run(state);
    } catch (const std::exception &error) {
      failed_ = true;
      state.SkipWithError(error.what());
    }
  });
  return benchmark::internal::RegisterBenchmarkInternal(registered); // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)
}

} // namespace onced::bench::micro
