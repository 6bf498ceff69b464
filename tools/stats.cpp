#include "stats.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "onced/outcome.hpp"
#include "worker/counters.hpp"

namespace onced::tools {
namespace {

// What a figure says; nothing where the worker has no words for it.
struct Words {
  std::string help;
  bool is_counter = true;
};
std::optional<Words> words_of(const std::string &name) {
  for (const worker::CounterTraits &counter : worker::counter_table) {
    if (counter.name == name) return Words{std::string(counter.help), !counter.is_maximum};
  }
  for (const OutcomeTraits &outcome : outcome_table) {
    if (outcome.name == name) return Words{"deliveries, and queued jobs at their end, with the outcome " + name};
  }
  if (name == "store_openings") return Words{"times the store was opened"};
  return std::nullopt;
}

bool is_figure(const std::string &name) {
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

std::string sample(const std::string &name, std::string_view type, std::string_view help, const std::string &value) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, type, help, value);
}

// The figures of each type of queued job, told apart by a label.
std::string handlers_text(const Json &handlers) {
  std::string text;
  for (const char *figure : {"waiting", "starting", "running", "oldest_ms"}) {
    const std::string name = fmt::format("onced_handler_{}", figure);
    if (!handlers.empty()) text += fmt::format("# HELP {0} queued jobs by type: {1}\n# TYPE {0} gauge\n", name, figure);
    for (const auto &[type, state] : handlers.items()) {
      const Json &value = state.at(figure);
      if (value.is_number()) text += fmt::format("{}{{type={}}} {}\n", name, visible(dump(Json(type))), value.dump());
    }
  }
  return text;
}

std::string in_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

} // namespace

std::string prometheus_text(const Json &stats) {
  std::string text;
  for (const auto &[name, value] : stats.items()) {
    if (!is_figure(name)) continue; // not of our worker
    if (const auto words = words_of(name); words && value.is_number()) {
      text += words->is_counter ? sample("onced_" + name + "_total", "counter", words->help, value.dump())
                                : sample("onced_" + name, "gauge", words->help, value.dump());
    } else if (value.is_number()) {
      text += sample("onced_" + name, "gauge", in_words(name), value.dump());
    } else if (name == "handlers" && value.is_object()) {
      text += handlers_text(value);
    } else if (value.is_boolean()) {
      text += sample("onced_" + name, "gauge", in_words(name) + ": 1 or 0", value.get<bool>() ? "1" : "0");
    }
  }
  return text;
}

ExitCode run_stats(const StatsOptions &options, Output &output) {
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options.target.deadline;
  const auto answer = run_query(options.target, "stats", Json::object(), deadline);
  if (!answer) return report(answer.error());
  if (options.format == StatsFormat::json) {
    output.line(for_people(*answer));
  } else {
    output.text(prometheus_text(*answer));
  }
  if (const auto flushed = output.flush(); !flushed) return report(flushed.error());
  return ExitCode::ok;
}

} // namespace onced::tools
