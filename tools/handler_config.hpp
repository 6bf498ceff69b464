#pragma once

#include <string>
#include <vector>

#include <toml++/toml.h>

#include "onced/handler.hpp"
#include "onced/worker.hpp"

namespace onced::tools {

// Reads the table [handlers]: in it, a table for each type whose jobs are queued (docs/handlers.md). `file` names it in
// errors. Errors: `configuration`, naming file, line, key and what there is.
[[nodiscard]] Result<std::vector<QueuedType>> read_handlers(const toml::node &handlers, const std::string &file);

// Reads the table [relays]: in it, a table for each worker that messages of results are sent on to. Errors as above.
[[nodiscard]] Result<std::vector<RelayTarget>> read_relays(const toml::node &relays, const std::string &file);

} // namespace onced::tools
