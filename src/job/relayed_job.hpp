#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onced/digest.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"

// The jobs that messages of a result become (docs/storage.md, "A row of `relay`").
namespace onced {

// Why the messages of a result cannot be sent on; nothing where they can.
[[nodiscard]] std::optional<std::string> defect_of(const std::vector<RelayMessage> &messages, JobParser &parser);

// The operation id of the message of this index, from 0, of the job under this key: the same whenever and wherever the
// job is handled again, so that at its destination too it is one job.
[[nodiscard]] std::string relayed_operation_id(BytesView parent_key, std::size_t index, Digester &digester);

// The whole job of a message without a defect: as the handler wrote it, with its operation id, and with the parent's
// trace context where it names none.
[[nodiscard]] Bytes relayed_job(BytesView message, BytesView parent_key, std::size_t index,
                                std::string_view traceparent, Digester &digester, JobParser &parser);

} // namespace onced
