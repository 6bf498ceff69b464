#pragma once

#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "onced/bytes.hpp"
#include "onced/handler.hpp"

// What commands are given and what they answer, as JSON (docs/handlers.md).
namespace onced::runner {

// What a command reads on stdin; nothing where JSON cannot say the payload, as it holds a binary.
[[nodiscard]] std::optional<Bytes> input_of(BytesView payload);

// What a handler has written: its result or, `with_messages`, an object of result and messages. Or why it is neither.
[[nodiscard]] tl::expected<Done, std::string> done_of(BytesView output, bool with_messages);

// What a reconcile command has written. What is no answer is an unknown effect.
[[nodiscard]] ReconcileResult reconciliation_of(BytesView output);

} // namespace onced::runner
