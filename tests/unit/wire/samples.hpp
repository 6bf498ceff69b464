#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "onced/digest.hpp"
#include "support/job_bytes.hpp"
#include "wire/messages.hpp"

// One message of each kind: those of the worked examples in docs/protocol.md.
namespace onced::testing {

inline const WallTime sample_issued_at{std::chrono::microseconds{1'764'500'000'000'000}};

inline SenderId sample_sender() {
  SenderId id;
  for (std::size_t at = 0; at < SenderId::size; ++at)
    id.bytes[at] = static_cast<std::uint8_t>(0x10 + at);
  return id;
}

inline BootId sample_boot() {
  BootId id;
  id.bytes[7] = 1;
  for (std::size_t at = 8; at < BootId::size; ++at)
    id.bytes[at] = static_cast<std::uint8_t>(0xA0 + at);
  return id;
}

inline const std::vector<Bytes> &sample_jobs() {
  static const std::vector<Bytes> jobs{job_bytes("demo-1", {1, 2, 3}), job_bytes("demo-1", {9})};
  return jobs;
}

inline std::vector<wire::BatchEntry> sample_entries() {
  Digester digester;
  std::vector<wire::BatchEntry> entries;
  for (const Bytes &job : sample_jobs()) {
    entries.push_back({.sequence = Sequence{entries.size() + 1},
                       .tag = digester.tag(job),
                       .attempt = 1,
                       .issued_at = sample_issued_at,
                       .job = job});
  }
  return entries;
}

inline Bytes sample_batch() {
  Bytes out;
  wire::encode_batch(sample_sender(), sample_entries(), out);
  return out;
}

// {"query": "count"}
inline Bytes sample_request() {
  Bytes out;
  messagepack::Writer(out).map(1).string("query").string("count");
  return out;
}

inline Bytes sample_answer() {
  Bytes out;
  messagepack::Writer(out).map(3).string("results").positive(1).string("dead_letters").positive(1).string("pending");
  messagepack::Writer(out).positive(0);
  return out;
}

inline Bytes sample_replies() {
  static const Bytes six = integer_result(6);
  const auto entries = sample_entries();
  wire::RepliesEncoder encoder(sample_boot(), Durability::fsync);
  encoder.add({.sequence = Sequence{1},
               .tag = entries[0].tag,
               .outcome = Outcome::stored,
               .result = six,
               .detail = BytesView{}});
  encoder.add({.sequence = Sequence{2},
               .tag = entries[1].tag,
               .outcome = Outcome::conflict,
               .result = BytesView{},
               .detail = "another payload or type was committed under this key"});
  return encoder.take().at(0);
}

// What a worker says, by the name of its example.
inline std::vector<std::pair<std::string, Bytes>> sample_worker_messages() {
  return {{"greeting", wire::encode_greeting(sample_boot(), Durability::fsync)},
          {"replies", sample_replies()},
          {"unsupported", wire::encode_unsupported()},
          {"answer", wire::encode_answer(sample_answer())},
          {"notice", wire::encode_notice(wire::WorkerState::full)}};
}

// What a peer says to the replies socket, by the name of its example.
inline std::vector<std::pair<std::string, Bytes>> sample_peer_messages() {
  return {{"hello", wire::encode_hello(sample_sender())},
          {"query", wire::encode_query(sample_sender(), sample_request())}};
}

} // namespace onced::testing
