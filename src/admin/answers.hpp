#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/map_writer.hpp"
#include "admin/request.hpp"
#include "onced/error.hpp"
#include "onced/handler.hpp"
#include "onced/store.hpp"

// The answer functions of the table of queries.
namespace onced::admin {

// Whose question it is.
enum class Asker : std::uint8_t {
  network,   // whoever can connect: is shown no sender's id
  directory, // who may enter the data directory
};

[[nodiscard]] Result<void> answer_get(const Store &store, const Request &request, Asker asker, MapWriter &answer);
[[nodiscard]] Result<void> answer_count(const Store &store, const Request &request, Asker asker, MapWriter &answer);
[[nodiscard]] Result<void> answer_stats(const Store &store, const Request &request, Asker asker, MapWriter &answer);
[[nodiscard]] Result<void> answer_verify(const Store &store, const Request &request, Asker asker, MapWriter &answer);
[[nodiscard]] Result<void> answer_audit(const Store &store, const Request &request, Asker asker, MapWriter &answer);

[[nodiscard]] Result<void> answer_letter_list(const Store &store, const Request &request, Asker asker,
                                              MapWriter &answer);
[[nodiscard]] Result<void> answer_letter(const Store &store, const Request &request, Asker asker, MapWriter &answer);
[[nodiscard]] Result<void> answer_redrive(Store &store, const Handlers &handlers, const Request &request,
                                          MapWriter &answer);
[[nodiscard]] Result<void> answer_purge(Store &store, const Handlers &handlers, const Request &request,
                                        MapWriter &answer);

[[nodiscard]] Result<void> answer_queued_list(const Store &store, const Request &request, Asker asker,
                                              MapWriter &answer);
[[nodiscard]] Result<void> answer_queued(const Store &store, const Request &request, Asker asker, MapWriter &answer);
[[nodiscard]] Result<void> answer_resolve(Store &store, const Handlers &handlers, const Request &request,
                                          MapWriter &answer);

// Entries that several answers have.
void write_digest(MapWriter &map, std::string_view name, const std::optional<Digest> &digest);
void write_ids(MapWriter &map, std::string_view operation_id, std::string_view type, std::string_view effect_key);
void write_errors(MapWriter &map, const std::vector<std::string> &errors);
// Who sent it, by its handle. Who may enter the directory is told the id too.
void write_sender(MapWriter &map, const SenderId &sender, Sequence sequence, Asker asker);

} // namespace onced::admin
