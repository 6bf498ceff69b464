#include <functional>
#include <memory>
#include <stdexcept>

#include <benchmark/benchmark.h>

#include "benchmarks.hpp"
#include "sources.hpp"

// Two ways to look up: Store::get of a key, which reads the whole row; and the look-up of a commit, by committing a
// batch of nothing but duplicates, which also compares digests and returns results but neither locks nor writes. An
// absent key is only looked up by itself: a commit would go on and write it.
namespace onced::bench::micro {
namespace {

constexpr std::size_t rows = 20'480;
constexpr std::size_t batch = 256;
static_assert(rows % batch == 0);

constexpr std::size_t cache_bytes = 64U << 20U; // a quarter of it is by key

enum class Place { cache, memtable, table };

// A store with rows, made when it is first asked for.
class Rows {
public:
  explicit Rows(Place place) : deliveries_(make_jobs(rows, 4)), store_(place == Place::cache ? cache_bytes : 0) {
    for (std::size_t at = 0; at < rows; at += batch)
      store_.commit(batch_at(at), Outcome::stored);
    if (place == Place::table) store_.reopen();
    store_.expect_results(rows);
  }

  [[nodiscard]] std::span<const Delivery> batch_at(std::size_t first) const {
    return deliveries_.all().subspan(first, batch);
  }
  void get(std::size_t at) {
    const auto row = store_.store().get(*deliveries_.all()[at].key);
    if (!row || !*row) throw std::runtime_error("a row is not found");
  }
  void get_absent(const Key &key) {
    const auto row = store_.store().get(key);
    if (!row || *row) throw std::runtime_error("a row is found that is not there");
  }
  void commit_duplicates(std::size_t first) { store_.commit(batch_at(first), Outcome::duplicate); }

private:
  Deliveries deliveries_;
  OwnStore store_;
};

// Shared by the benchmarks of one place.
class LazyRows {
public:
  explicit LazyRows(Place place) : place_(place) {}
  Rows &operator*() {
    if (!rows_) rows_ = std::make_unique<Rows>(place_);
    return *rows_;
  }

private:
  Place place_;
  std::unique_ptr<Rows> rows_;
};

// A step that has no factor in common with the number of rows, so that each is met once before any again, in no order.
constexpr std::size_t stride = 7'919;

void get(benchmark::State &state, Rows &there) {
  std::size_t at = 0;
  for (auto _ : state) {
    there.get(at);
    at = (at + stride) % rows;
  }
  state.SetItemsProcessed(state.iterations());
}

void get_absent(benchmark::State &state, Rows &there) {
  std::vector<Key> keys;
  keys.reserve(rows);
  for (std::size_t at = 0; at < rows; ++at)
    keys.push_back(key_of_operation("sum", "absent-" + std::to_string(at)));
  std::size_t at = 0;
  for (auto _ : state) {
    there.get_absent(keys[at]);
    at = (at + stride) % rows;
  }
  state.SetItemsProcessed(state.iterations());
}

void commit_duplicates(benchmark::State &state, Rows &there) {
  std::size_t first = 0;
  for (auto _ : state) {
    there.commit_duplicates(first);
    first = (first + batch) % rows;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch));
}

} // namespace

void register_lookups(Registry &registry) {
  struct {
    Place place;
    const char *name;
  } const places[] = {{Place::cache, "/cache"}, {Place::memtable, "/memtable"}, {Place::table, "/table"}};
  struct {
    const char *name;
    void (*run)(benchmark::State &, Rows &);
    bool asks_cache;
  } const table[] = {{"look_up/get", get, false},
                     {"look_up/get_absent", get_absent, false},
                     {"look_up/commit_256_duplicates", commit_duplicates, true}};
  for (const auto &[place, suffix] : places) {
    const auto there = std::make_shared<LazyRows>(place);
    for (const auto &entry : table) {
      if (place == Place::cache && !entry.asks_cache) continue;
      registry.add(std::string(entry.name) + suffix,
                   [there, run = entry.run](benchmark::State &state) { run(state, **there); });
    }
  }
}

} // namespace onced::bench::micro
