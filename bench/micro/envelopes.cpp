#include <chrono>
#include <stdexcept>

#include <benchmark/benchmark.h>

#include "benchmarks.hpp"
#include "sources.hpp"
#include "wire/messages.hpp"

// The argument of each: deliveries in a message, or replies.
namespace onced::bench::micro {
namespace {

std::vector<wire::BatchEntry> make_entries(const std::vector<Bytes> &jobs) {
  Digester digester;
  std::vector<wire::BatchEntry> entries;
  entries.reserve(jobs.size());
  for (const Bytes &job : jobs) {
    entries.push_back({.sequence = Sequence{entries.size() + 1},
                       .tag = digester.tag(job),
                       .attempt = 1,
                       .issued_at = WallTime{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}},
                       .job = job});
  }
  return entries;
}

void count(benchmark::State &state) {
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void encode_batch(benchmark::State &state) {
  const auto jobs = make_jobs(static_cast<std::size_t>(state.range(0)), 4);
  const auto entries = make_entries(jobs);
  Bytes message;
  for (auto _ : state) {
    message.clear();
    wire::encode_batch({}, entries, message);
    benchmark::DoNotOptimize(message.data());
  }
  count(state);
}

void decode_batch(benchmark::State &state) {
  const auto jobs = make_jobs(static_cast<std::size_t>(state.range(0)), 4);
  Bytes message;
  wire::encode_batch({}, make_entries(jobs), message);
  wire::Batch batch;
  for (auto _ : state) {
    if (wire::decode_batch(message, batch) != wire::Framing::batch || batch.entries.size() != jobs.size()) {
      throw std::runtime_error("a batch was not read");
    }
    benchmark::DoNotOptimize(batch.entries.data());
  }
  count(state);
}

// As many frames as the size of a frame asks for.
std::vector<Bytes> encode(wire::RepliesEncoder &encoder, std::int64_t replies) {
  static constexpr BytesView result("\x2a", 1);
  for (std::int64_t at = 1; at <= replies; ++at) {
    encoder.add({.sequence = Sequence{static_cast<std::uint64_t>(at)},
                 .tag = {},
                 .outcome = Outcome::duplicate,
                 .result = result,
                 .detail = {}});
  }
  return encoder.take();
}

void encode_replies(benchmark::State &state) {
  wire::RepliesEncoder encoder({}, Durability::fsync);
  for (auto _ : state)
    benchmark::DoNotOptimize(encode(encoder, state.range(0)).data());
  count(state);
}

void decode_replies(benchmark::State &state) {
  wire::RepliesEncoder encoder({}, Durability::fsync);
  const auto frames = encode(encoder, state.range(0));
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  for (auto _ : state) {
    std::size_t replies = 0;
    for (const Bytes &frame : frames) {
      if (decoder.decode(frame, message) == wire::WorkerFraming::replies) replies += message.replies.replies.size();
    }
    if (replies != static_cast<std::size_t>(state.range(0))) throw std::runtime_error("replies were not read");
  }
  count(state);
}

} // namespace

void register_envelopes(Registry &registry) {
  struct {
    const char *name;
    void (*run)(benchmark::State &);
  } const table[] = {{"envelope/encode_batch", encode_batch},
                     {"envelope/decode_batch", decode_batch},
                     {"envelope/encode_replies", encode_replies},
                     {"envelope/decode_replies", decode_replies}};
  for (const auto &entry : table) {
    auto *registered = registry.add(entry.name, entry.run)->ArgName("deliveries");
    for (const int deliveries : {1, 16, 64, 256, 1024})
      registered->Arg(deliveries);
  }
}

} // namespace onced::bench::micro
