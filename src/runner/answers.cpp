#include "runner/answers.hpp"

#include "base/json_reader.hpp"
#include "base/json_value.hpp"

namespace onced::runner {
namespace {

using Refusal = tl::unexpected<std::string>;

// The bytes of a value that was MessagePack before, and so can be again.
Bytes messagepack_of(const Json &value) {
  Bytes bytes;
  static_cast<void>(messagepack_of_json(dump(value), bytes));
  return bytes;
}

// An object, bounded in depth before it is built.
tl::expected<Json, std::string> object_of(BytesView output) {
  Bytes bytes;
  if (const auto read = messagepack_of_json(output, bytes); !read) return Refusal("its output is " + read.error());
  auto value = json_of_messagepack(bytes, Binaries::refused);
  if (!value || !value->is_object()) return Refusal("its output is no JSON object with each name once");
  return std::move(*value);
}

tl::expected<RelayMessage, std::string> message_of(const Json &value) {
  const bool is_message = value.is_object() && value.size() == 2 && value.contains("to") && value["to"].is_string() &&
                          value.contains("job") && value["job"].is_object();
  if (!is_message) return Refusal("a message of its output is not {\"to\": NAME, \"job\": OBJECT}");
  return RelayMessage{.to = value["to"].get<std::string>(), .job = messagepack_of(value["job"])};
}

tl::expected<Done, std::string> done_with_messages(BytesView output) {
  const auto object = object_of(output);
  if (!object) return tl::unexpected(object.error());
  const bool is_answer = object->size() == 2 && object->contains("result") && object->contains("messages") &&
                         (*object)["messages"].is_array();
  if (!is_answer) return Refusal("its output is not {\"result\": VALUE, \"messages\": ARRAY}");
  Done done{.result = messagepack_of((*object)["result"])};
  for (const Json &value : (*object)["messages"]) {
    auto message = message_of(value);
    if (!message) return tl::unexpected(message.error());
    done.messages.push_back(std::move(*message));
  }
  return done;
}

} // namespace

std::optional<Bytes> input_of(BytesView payload) {
  const auto value = json_of_messagepack(payload, Binaries::refused);
  if (!value) return std::nullopt;
  return dump(*value) + '\n';
}

tl::expected<Done, std::string> done_of(BytesView output, bool with_messages) {
  if (output.empty()) return Refusal("it wrote no result");
  if (with_messages) return done_with_messages(output);
  Done done;
  if (const auto read = messagepack_of_json(output, done.result); !read) {
    return Refusal("its output is " + read.error());
  }
  return done;
}

ReconcileResult reconciliation_of(BytesView output) {
  const auto object = object_of(output);
  if (!object) return EffectUnknown{"reconcile: " + object.error()};
  const Json effect = object->value("effect", Json());
  if (effect == "applied" && object->size() == 2 && object->contains("result")) {
    return Done{.result = messagepack_of((*object)["result"])};
  }
  if (effect == "absent" && object->size() == 1) return EffectAbsent{};
  if (effect == "unknown" && object->size() == 1) return EffectUnknown{"reconcile: the effect is unknown"};
  return EffectUnknown{"reconcile: its output says neither applied with a result nor absent nor unknown"};
}

} // namespace onced::runner
