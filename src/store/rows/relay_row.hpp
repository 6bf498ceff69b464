#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/handler.hpp"
#include "onced/ids.hpp"
#include "onced/store.hpp"
#include "store/rows/row_amount.hpp"

namespace onced::store {

// One row of `relay`: a message of a committed result that waits to be sent on, as the whole job that it becomes.
struct RelayRow {
  Bytes job;
  WallTime created_at; // the worker's clock when the result was committed
  std::uint64_t redrives = 0;
};

struct RelayEntry {
  Bytes key;
  RelayRow row;
};

// What the key of a row says. Views into it.
struct RelayKey {
  std::string_view to;
  BytesView parent; // the key of the job whose result it is
  std::size_t index = 0;
};

// Destination first, so that the messages of each lie together: none is looked through for another's.
[[nodiscard]] Bytes relay_key(std::string_view to, BytesView parent, std::size_t index);
// Nothing where the bytes are no such key.
[[nodiscard]] std::optional<RelayKey> relay_key_of(BytesView bytes);
// What the keys of all messages to one destination begin with.
[[nodiscard]] Bytes relay_prefix(std::string_view to);

// The rows of a result's messages, which have no defect (src/job/relayed_job.hpp).
[[nodiscard]] std::vector<RelayEntry> relay_entries(const std::vector<RelayMessage> &messages, BytesView parent_key,
                                                    std::string_view traceparent, WallTime now, Digester &digester,
                                                    JobParser &parser);
[[nodiscard]] RowAmount amount_of(std::span<const RelayEntry> entries);

// The dead letter of a message is of its row, not of its job's key: that key may be another job's here.
[[nodiscard]] DeadLetterId relay_letter_id(BytesView row_key, Digester &digester);
// What a message becomes that `outcome` was said of for good. Not yet its ids and digest.
[[nodiscard]] DeadLetter letter_of(BytesView row_key, const RelayRow &row, Outcome outcome, std::string_view detail,
                                   WallTime now, Digester &digester);
// A row that goes on where such a dead letter ends.
[[nodiscard]] RelayEntry relay_entry_of(const DeadLetter &letter);

} // namespace onced::store
