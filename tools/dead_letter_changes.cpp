#include "dead_letter_changes.hpp"

#include <algorithm>

#include <poll.h>

#include "base/numbers.hpp"
#include "onced/ids.hpp"
#include "onced/limits.hpp"
#include "progress.hpp"
#include "query.hpp"
#include "signals.hpp"

namespace onced::tools {
namespace {

struct Change {
  const char *query;
  const char *name;       // in a dry run
  const char *past_tense; // its outcome, where the answer has none
};

constexpr Change redrive{"dead-letters redrive", "redrive", "redriven"};
constexpr Change purge{"dead-letters purge", "purge", "purged"};

Error usage(std::string concerns, std::string cause, std::string remedy) {
  return {ErrorCode::usage, std::move(concerns), std::move(cause), std::move(remedy)};
}

Result<void> check(const DeadLetterChangeOptions &options) {
  if (options.ids.empty() == options.reason.empty()) {
    return tl::unexpected(usage("ID, --reason", options.ids.empty() ? "none is given" : "both are given",
                                "give ids that onced dead-letters list prints, or a reason"));
  }
  if (!options.type.empty() && options.reason.empty()) {
    return tl::unexpected(usage("--type", "it goes with --reason", "give both, or ids alone"));
  }
  for (const std::string &id : options.ids) {
    const auto bytes = from_hex(id);
    if (!bytes || !DeadLetterId::from(*bytes)) {
      return tl::unexpected(usage("'" + id + "'", "not the id of a dead letter",
                                  "give the 32 hexadecimal characters that onced dead-letters list prints"));
    }
  }
  if (options.dry_run) return {};
  return check_audited(options.by, options.why);
}

// One run of the command.
class ChangeRun {
public:
  ChangeRun(const DeadLetterChangeOptions &options, const Change &change, Output &output)
      : options_(options), change_(change), output_(output), session_(options.data) {}

  ExitCode run() {
    const auto done = options_.ids.empty() ? change_by_reason() : change_by_ids();
    if (!done) return report(done.error());
    if (const auto flushed = output_.flush(); !flushed) return report(flushed.error());
    if (stop_.requested()) return ExitCode::try_again;
    return all_removed_ ? ExitCode::ok : ExitCode::no;
  }

private:
  [[nodiscard]] bool stopped() const { return stop_.requested() || output_.failed(); }
  [[nodiscard]] MonotonicTime deadline() { return clock_.monotonic() + options_.deadline; }

  Result<void> change_by_ids() {
    for (const std::string &text : options_.ids) {
      if (stopped()) break;
      const std::string id = to_hex(*from_hex(text)); // in lower case, as everywhere
      if (auto done = options_.dry_run ? show_by_id(id) : change_one(id); !done) return done;
    }
    return {};
  }

  // A page is read, then changed: what is changed meanwhile by others is not found, and no row is met twice, as a dead
  // letter that stays has the same reason or is no more asked for.
  Result<void> change_by_reason() {
    Json arguments{{"reason", options_.reason}};
    if (!options_.type.empty()) arguments["type"] = options_.type;
    while (!stopped()) {
      const auto page = session_.ask("dead-letters list", arguments, deadline());
      if (!page) return tl::unexpected(page.error());
      for (const Json &row : page->value("rows", Json::array())) {
        if (stopped()) break;
        if (options_.dry_run)
          show(row);
        else if (auto done = change_one(row.value("id", "")); !done)
          return done;
      }
      const auto next = page->find("next");
      if (next == page->end() || next->is_null()) break;
      arguments["after"] = *next;
    }
    return {};
  }

  // An error is one that the others would meet too.
  Result<void> change_one(const std::string &id) {
    wait_for_turn();
    if (stopped()) return {};
    const auto answer =
        session_.ask(change_.query, {{"id", id}, {"by", options_.by}, {"why", options_.why}}, deadline());
    if (!answer) {
      const ErrorCode code = answer.error().code;
      const bool of_this_one = code == ErrorCode::corrupt || (code == ErrorCode::not_found && session_.has_answered());
      if (!of_this_one) return tl::unexpected(answer.error());
      print_refused(id, answer.error());
      return {};
    }
    const bool removed = answer->value("removed", false);
    all_removed_ = all_removed_ && removed;
    Json line{{"id", id}, {"outcome", answer->value("outcome", change_.past_tense)}, {"removed", removed}};
    if (const auto detail = answer->find("detail"); detail != answer->end() && !detail->is_null())
      line["detail"] = *detail;
    if (!removed && answer->contains("now_id")) line["now_id"] = answer->at("now_id");
    print(line);
    return {};
  }

  void print_refused(const std::string &id, const Error &error) {
    all_removed_ = false;
    Json line{{"id", id}, {"outcome", name_of(error.code)}, {"removed", false}, {"detail", error.cause}};
    if (session_.was_repeated())
      line["detail"] = "the request was made twice, and the first may have done it: see onced audit";
    print(line);
  }

  Result<void> show_by_id(const std::string &id) {
    const auto answer = session_.ask("dead-letters show", {{"id", id}}, deadline());
    if (!answer) return tl::unexpected(answer.error());
    if (answer->value("found", false)) {
      show(*answer);
    } else {
      all_removed_ = false;
      output_.line({{"id", id}, {"outcome", name_of(ErrorCode::not_found)}});
    }
    return {};
  }

  void show(const Json &row) {
    const Json all = for_people(row);
    Json line{{"id", all.at("id")}, {"would", change_.name}};
    for (const char *name : {"reason", "operation_id", "type"})
      line[name] = all.contains(name) ? all.at(name) : Json();
    output_.line(line);
  }

  // At once: whoever reads along sees what has been done, whatever happens next.
  void print(const Json &line) {
    output_.line(line);
    static_cast<void>(output_.flush()); // a failure is kept, and ends the run
    progress_.show_count(++changed_, change_.past_tense);
  }

  void wait_for_turn() {
    if (!options_.rate) return;
    const auto pause = std::chrono::duration<double>(1.0 / *options_.rate);
    next_ = std::max(next_, clock_.monotonic());
    pollfd stop{stop_.descriptor(), POLLIN, 0};
    for (auto left = next_ - clock_.monotonic(); left.count() > 0 && !stop_.requested();
         left = next_ - clock_.monotonic()) {
      const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      ::poll(&stop, 1, static_cast<int>(std::min<std::int64_t>(rounded, 60'000)));
    }
    next_ += std::chrono::duration_cast<MonotonicTime::duration>(pause);
  }

  const DeadLetterChangeOptions &options_;
  const Change &change_;
  Output &output_;
  StopEvent stop_;
  SignalWatch signals_{[this](int) { stop_.request(); }};
  SystemClock clock_;
  ChangeSession session_;
  Progress progress_{clock_};
  MonotonicTime next_{};
  std::uint64_t changed_ = 0;
  bool all_removed_ = true;
};

ExitCode run_change(const DeadLetterChangeOptions &options, const Change &change, Output &output) {
  if (const auto checked = check(options); !checked) return report(checked.error());
  return ChangeRun(options, change, output).run();
}

} // namespace

ExitCode run_dead_letters_redrive(const DeadLetterChangeOptions &options, Output &output) {
  return run_change(options, redrive, output);
}

ExitCode run_dead_letters_purge(const DeadLetterChangeOptions &options, Output &output) {
  return run_change(options, purge, output);
}

Result<double> parse_rate(const std::string &text) {
  constexpr std::string_view unit = "/s";
  if (text.ends_with(unit)) {
    const auto rate = parse_decimal(std::string_view(text).substr(0, text.size() - unit.size()), 0.001, 1e6);
    if (rate) return *rate;
  }
  return tl::unexpected(usage("'" + text + "'", "not a rate", "write N/s, N from 0.001 to 1000000"));
}

} // namespace onced::tools
