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

namespace onced::admin {

// Whose question it is.
enum class Asker : std::uint8_t {
  network,   // whoever can connect: is shown no sender's id
  directory, // who may enter the data directory
};

// Each writes its answer, or returns what is wrong with the request or the store.
using ReadAnswer = Result<void>(const Store &store, const Request &request, Asker asker, MapWriter &answer);
using ChangeAnswer = Result<void>(Store &store, const Handlers &handlers, const Request &request, MapWriter &answer);

ReadAnswer answer_get;
ReadAnswer answer_count;
ReadAnswer answer_stats;
ReadAnswer answer_verify;
ReadAnswer answer_audit;
ReadAnswer answer_letter_list;
ReadAnswer answer_letter;
ReadAnswer answer_queued_list;
ReadAnswer answer_queued;
ChangeAnswer answer_redrive;
ChangeAnswer answer_purge;
ChangeAnswer answer_resolve;

// Entries that several answers have.
void write_digest(MapWriter &map, std::string_view name, const std::optional<Digest> &digest);
void write_ids(MapWriter &map, std::string_view operation_id, std::string_view type, std::string_view effect_key);
void write_errors(MapWriter &map, const std::vector<std::string> &errors);
// Who sent it, by its handle. Who may enter the directory is told the id too.
void write_sender(MapWriter &map, const SenderId &sender, Sequence sequence, Asker asker);

} // namespace onced::admin
