#pragma once

#include <string>
#include <vector>

#include <toml++/toml.h>

#include "onced/handler.hpp"

namespace onced::tools {

// Reads the table [handlers]: in it, a table for each type whose jobs are queued (docs/handlers.md). `file` names it in
// errors. Errors: `configuration`, naming file, line, key and what there is.
[[nodiscard]] Result<std::vector<QueuedType>> read_handlers(const toml::node &handlers, const std::string &file);

} // namespace onced::tools
