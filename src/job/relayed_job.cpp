#include "job/relayed_job.hpp"

#include "base/messagepack.hpp"
#include "base/utf8.hpp"
#include "onced/limits.hpp"

namespace onced {
namespace {

// Keeps what is hashed apart from whatever else is.
constexpr std::string_view relay_tag = "onced relay 1\n";

struct MapHead {
  std::size_t pairs = 0;
  std::size_t bytes = 0; // 0: it is no map
};

MapHead map_head(BytesView bytes) {
  const auto at = [&](std::size_t index) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[index])); };
  if (bytes.empty()) return {};
  if ((at(0) & 0xF0U) == 0x80) return {.pairs = at(0) & 0x0FU, .bytes = 1};
  if (at(0) == 0xDE && bytes.size() >= 3) return {.pairs = at(1) << 8U | at(2), .bytes = 3};
  if (at(0) == 0xDF && bytes.size() >= 5) {
    return {.pairs = at(1) << 24U | at(2) << 16U | at(3) << 8U | at(4), .bytes = 5};
  }
  return {};
}

// The message with these names in front of its own. Empty where it is no map, or claims to be a larger one than it is.
Bytes with_ids(BytesView message, std::string_view operation_id, std::string_view traceparent) {
  Bytes job;
  const MapHead head = map_head(message);
  if (head.bytes == 0 || head.pairs > message.size()) return job;
  messagepack::Writer writer(job);
  writer.map(head.pairs + (traceparent.empty() ? 1 : 2)).string("operation_id").string(operation_id);
  if (!traceparent.empty()) writer.string("traceparent").string(traceparent);
  job += message.substr(head.bytes);
  return job;
}

std::optional<std::string> defect_of(const RelayMessage &message, JobParser &parser) {
  if (message.to.empty() || message.to.size() > limits::relay_name_bytes_max || !utf8::valid(message.to)) {
    return "its destination is not 1 to " + std::to_string(limits::relay_name_bytes_max) + " bytes of UTF-8";
  }
  Job job;
  const auto parsed = parser.parse(with_ids(message.job, "id", {}), job);
  // It is given one, so its own would be a second.
  if (!parsed) return "it makes no job with an operation id of ours: " + std::string(name_of(parsed.error()));
  return std::nullopt;
}

} // namespace

std::optional<std::string> defect_of(const std::vector<RelayMessage> &messages, JobParser &parser) {
  if (messages.size() > limits::relay_messages_max) {
    return "the result has " + std::to_string(messages.size()) + " messages, more than " +
           std::to_string(limits::relay_messages_max);
  }
  std::size_t bytes = 0;
  for (const RelayMessage &message : messages)
    bytes += message.job.size();
  if (bytes > limits::relay_message_bytes_max) {
    return "the result has messages of " + std::to_string(bytes) + " bytes, more than " +
           std::to_string(limits::relay_message_bytes_max);
  }
  for (std::size_t at = 0; at < messages.size(); ++at) {
    if (const auto defect = defect_of(messages[at], parser)) {
      return "message " + std::to_string(at) + " of the result cannot be sent on: " + *defect;
    }
  }
  return std::nullopt;
}

std::string relayed_operation_id(BytesView parent_key, std::size_t index, Digester &digester) {
  Bytes hashed(relay_tag);
  hashed += parent_key;
  hashed += static_cast<char>(static_cast<unsigned char>(index >> 8U));
  hashed += static_cast<char>(static_cast<unsigned char>(index));
  return to_hex(digester.plain(hashed).view());
}

Bytes relayed_job(BytesView message, BytesView parent_key, std::size_t index, std::string_view traceparent,
                  Digester &digester, JobParser &parser) {
  const std::string id = relayed_operation_id(parent_key, index, digester);
  Bytes job = with_ids(message, id, traceparent);
  Job parsed;
  // Where the message names one, ours would be a second.
  if (!traceparent.empty() && !parser.parse(job, parsed)) return with_ids(message, id, {});
  return job;
}

} // namespace onced
