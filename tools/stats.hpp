#pragma once

#include <string>

#include "exit_codes.hpp"
#include "output.hpp"
#include "query.hpp"

namespace onced::tools {

enum class StatsFormat { json, prometheus };

struct StatsOptions {
  QueryTarget target;
  StatsFormat format = StatsFormat::json;
};

// Prints what a running worker has counted since it started: one JSON line, or the text that Prometheus reads.
[[nodiscard]] ExitCode run_stats(const StatsOptions &options, Output &output);

// The text of one answer of `stats`: a counter is onced_NAME_total, any other figure a gauge onced_NAME.
[[nodiscard]] std::string prometheus_text(const Json &stats);

} // namespace onced::tools
