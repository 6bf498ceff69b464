// The command line: options into plain structs, and the subcommand's function called. The only file that includes
// CLI11, which compiles slowly.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit.hpp"
#include "bench.hpp"
#include "bench/number_options.hpp"
#include "config.hpp"
#include "count.hpp"
#include "dead_letter_changes.hpp"
#include "dead_letters.hpp"
#include "exit_codes.hpp"
#include "get.hpp"
#include "init_process.hpp"
#include "line_queue.hpp"
#include "pending.hpp"
#include "quantity.hpp"
#include "rehearse.hpp"
#include "resources.hpp"
#include "send.hpp"
#include "serve.hpp"
#include "signals.hpp"
#include "stats.hpp"
#include "suggestion.hpp"
#include "verify.hpp"
#include "version.hpp"

namespace onced::tools {
namespace {

// Rows of a store are never so many; a greater number is a slip of the hand.
constexpr std::uint64_t rows_max = 1'000'000'000'000;
// Connections are not either, and this many are far beyond what the memory of any machine is planned for.
constexpr std::uint64_t senders_max = 1'000'000;
constexpr std::uint64_t copies_max = 1'000'000;
// Any number is a seed.
constexpr std::uint64_t seed_max = UINT64_MAX;

// A subcommand: its options, its table in a configuration file, and what it does.
struct Command {
  CLI::App *app;
  std::string name; // as it is typed
  std::function<ExitCode(Output &)> run;
  std::vector<std::string> required;     // by option or configuration file
  std::vector<std::string> alternatives; // one of them on the command line hides the others in the file
  std::string config_file;
  std::function<void(Config &)> take_handlers; // and relays; empty: this command has none

  [[nodiscard]] std::string table() const {
    std::string table = name;
    std::replace(table.begin(), table.end(), ' ', '.');
    return table;
  }
};

// Commands keep their addresses: options are bound to them.
using Commands = std::vector<std::unique_ptr<Command>>;

Command &add_command(Commands &commands, CLI::App &parent, const std::string &name, const std::string &title,
                     const std::string &examples) {
  CLI::App *app = parent.add_subcommand(name, title);
  app->footer("Examples:\n" + examples);
  const std::string full = parent.get_parent() == nullptr ? name : parent.get_name() + " " + name;
  commands.push_back(std::make_unique<Command>(Command{app, full, {}, {}, {}, {}, {}}));
  Command &command = *commands.back();
  app->add_option("--config", command.config_file,
                  "TOML file with settings in [" + command.table() +
                      "]; the command "
                      "line wins")
      ->type_name("FILE");
  return command;
}

// An option whose text is read by `parse`, a function that gives a Result.
template <class Value, class Parse>
void add_parsed(CLI::App &app, const std::string &name, const std::string &type, const std::string &title, Value &value,
                Parse parse) {
  app.add_option_function<std::string>(
         name,
         [&value, name, parse](const std::string &text) {
           auto parsed = parse(text);
           if (!parsed) throw CLI::ValidationError(name, describe(parsed.error()));
           value = std::move(*parsed);
         },
         title)
      ->type_name(type);
}

void add_duration(CLI::App &app, const std::string &name, const std::string &title, std::chrono::milliseconds &value) {
  add_parsed(app, name, "DURATION", title, value, parse_duration);
}

// A whole number. Every number of the command line goes through here, add_share, add_parsed or what they share.
template <class Value>
CLI::Option *add_whole(CLI::App &app, const std::string &name, Value &value, const std::string &title,
                       std::uint64_t least, std::uint64_t most) {
  return app.add_option(name, value, title)->check(bench::whole(least, most));
}

void add_share(CLI::App &app, const std::string &name, double &value, const std::string &title) {
  app.add_option(name, value, title)->check(bench::decimal(0, 1))->type_name("SHARE");
}

template <class Value> void add_size(CLI::App &app, const std::string &name, Value &value, const std::string &title) {
  add_parsed(app, name, "SIZE", title, value, parse_size);
}

void add_limit(CLI::App &app, std::optional<std::uint64_t> &rows) {
  add_whole(app, "--limit", rows, "Print so many at most (default all)", 0, rows_max);
}

void add_events(CLI::App &app, std::filesystem::path &file) {
  app.add_option("--events", file, "Append each step of each delivery to this file, as JSON, one a line")
      ->type_name("FILE");
}

// `sides` are the beginnings of the points that this command meets.
void add_kill_at(CLI::App &app, const std::vector<std::string_view> &sides, KillSwitch &value) {
  std::string points;
  for (const std::string_view point : kill_point_names) {
    const bool meets = std::any_of(sides.begin(), sides.end(),
                                   [&](std::string_view side) { return point.substr(0, side.size()) == side; });
    if (meets) points.append(points.empty() ? "" : ", ").append(point);
  }
  add_parsed(app, "--kill-at", "NAME:N", "For tests: kill this process at the Nth arrival at one of " + points, value,
             KillSwitch::parse);
}

void add_log_format(CLI::App &app, LogFormat &value) {
  add_parsed(app, "--log-format", "text|json", "Form of the log on stderr (default text)", value,
             [](const std::string &text) -> Result<LogFormat> {
               if (const auto format = log_format_of(text)) return *format;
               return tl::unexpected(Error{ErrorCode::usage, "'" + text + "'", "no log format", "text or json"});
             });
}

void add_durability(CLI::App &app, Durability &value) {
  add_parsed(
      app, "--durability", "fsync|page-cache",
      "What an acknowledgement promises; page-cache: a power cut may lose results (default fsync)", value,
      [](const std::string &text) -> Result<Durability> {
        if (const auto durability = durability_of(text)) return *durability;
        return tl::unexpected(Error{ErrorCode::usage, "'" + text + "'", "no durability mode", "fsync or page-cache"});
      });
}

// A cap of `serve` in bytes, from `least` on.
void add_byte_cap(CLI::App &app, const std::string &name, std::uint64_t &value, const std::string &title,
                  std::uint64_t least) {
  const auto parse = [least](const std::string &text) -> Result<std::uint64_t> {
    auto bytes = parse_size(text);
    if (!bytes || *bytes >= least) return bytes;
    return tl::unexpected(Error{ErrorCode::usage, "'" + text + "'", "this cap is too small",
                                "give " + std::to_string(least) + " bytes or more, such as 64MiB"});
  };
  add_parsed(app, name, "SIZE", title + " (default " + std::to_string(value) + ")", value, parse);
}

// Beyond the caps for dead letters. At each but the audit's, what would exceed it is answered `busy`.
void add_caps(CLI::App &app, StoreOptions &store) {
  const auto add_row_cap = [&](const std::string &name, std::uint64_t &value, const std::string &title,
                               std::uint64_t least) {
    add_whole(app, name, value, title, least, rows_max)->capture_default_str();
  };
  add_byte_cap(app, "--dead-letter-rate", store.dead_letter_bytes_a_second,
               "Write so many bytes of dead letters a second; what comes faster is busy",
               limits::dead_letter_bytes_a_second_min);
  add_row_cap("--queue-jobs-max", store.queue_jobs_max, "Keep so many queued jobs; beyond it a new one is busy", 1);
  add_byte_cap(app, "--queue-bytes-max", store.queue_bytes_max,
               "Keep so many bytes of queued jobs; beyond it a new one is busy", limits::message_bytes_max);
  add_row_cap("--relay-messages-max", store.relay_jobs_max,
              "Keep so many messages of results to be sent on; beyond it a job whose result has some is busy",
              limits::relay_messages_max);
  add_byte_cap(app, "--relay-bytes-max", store.relay_bytes_max,
               "Keep so many bytes of messages of results; beyond it a job whose result has some is busy",
               limits::message_bytes_max);
  add_row_cap("--audit-rows-max", store.audit_rows_max, "Remember so many changes; the oldest goes first", 1);
}

void add_target(Command &command, QueryTarget &target) {
  CLI::App &app = *command.app;
  app.add_option("--data", target.data, "Data directory, whether a worker runs on it or not")->type_name("DIR");
  app.add_option("--replies", target.replies, "Replies endpoint of a worker; this or --data")->type_name("ENDPOINT");
  add_duration(app, "--deadline", "Wait so long for an answer (default 10s)", target.deadline);
  command.alternatives = {"--data", "--replies"};
}

void add_serve(Commands &commands, CLI::App &root) {
  auto &command =
      add_command(commands, root, "serve", "Run a worker: take jobs, commit each result once, reply.",
                  "  onced serve --data /var/lib/onced\n"
                  "  onced serve --data demo.data --jobs 'tcp://127.0.0.1:*' --replies 'tcp://127.0.0.1:*'\n"
                  "  onced serve --config onced.toml --log-format json\n");
  auto options = std::make_shared<ServeOptions>();
  WorkerOptions &worker = options->worker;
  CLI::App &app = *command.app;
  app.add_option("--data", worker.store.directory, "Data directory, created when absent (required)")->type_name("DIR");
  app.add_option("--jobs", worker.jobs_endpoint, "Take jobs here")->capture_default_str()->type_name("ENDPOINT");
  app.add_option("--replies", worker.replies_endpoint, "Reply and answer queries here")
      ->capture_default_str()
      ->type_name("ENDPOINT");
  add_whole(app, "--workers", worker.threads, "Worker threads", 1, limits::worker_threads_max)->capture_default_str();
  add_size(app, "--memory", worker.memory_bytes,
           "Stay below this with so many --senders at their worst (default 512MiB)");
  add_whole(app, "--senders", worker.senders, "Connections of senders that --memory is planned for", 0, senders_max)
      ->capture_default_str();
  app.add_option("--operator-group", worker.operator_group,
                 "Let this group of the system operate the worker through its control socket, and nothing else")
      ->type_name("GROUP");
  add_durability(app, worker.store.durability);
  add_whole(app, "--dead-letters-max", worker.store.dead_letters_max,
            "Keep so many dead letters; beyond it what would add one is busy", 0, rows_max)
      ->capture_default_str();
  add_size(app, "--dead-letter-bytes-max", worker.store.dead_letter_bytes_max,
           "Keep so many bytes of jobs in dead letters; likewise (default 4GiB)");
  app.add_flag("--accept-loss", worker.store.accept_loss,
               "Open the database although acknowledged results may be missing from it");
  add_share(app, "--drop-replies", worker.lab.drop_share, "Lab: drop this share of the frames of replies");
  add_duration(app, "--delay-replies", "Lab: hold every reply back so long (default 0ms)", worker.lab.delay);
  add_duration(app, "--delay-commit",
               "Lab: let each commit wait so long between its look-up and its transaction (default 0ms)",
               worker.lab.delay_commit);
  add_whole(app, "--seed", worker.lab.seed, "Lab: repeat the choices of --drop-replies", 0, seed_max)
      ->capture_default_str();
  app.add_flag("--cut-heartbeats", worker.lab.cut_heartbeats,
               "Lab: extend no handler's lease, so that it ends with its visibility timeout");
  add_duration(app, "--drain-timeout",
               "When told to stop: let handlers run on so long before they are signalled (default 25s)",
               worker.drain_timeout);
  app.add_flag("--allow-core", options->allow_core,
               "Allow core dumps and debuggers; handlers can then read this process's environment");
  add_caps(app, worker.store);
  add_kill_at(app, {"worker.", "queue.", "relay."}, worker.kill_switch);
  add_events(app, options->events);
  add_log_format(app, options->log_format);
  command.required = {"--data"};
  command.take_handlers = [options](Config &config) {
    options->handlers = std::move(config.handlers);
    options->worker.relays = std::move(config.relays);
  };
  command.run = [options](Output &) { return run_serve(*options); };
}

void add_send(Commands &commands, CLI::App &root) {
  auto &command = add_command(commands, root, "send",
                              "Send jobs, again until each is settled, and print its outcome as it settles.",
                              "  echo '{\"operation_id\":\"demo-1\",\"numbers\":[1,2,3]}' | onced send\n"
                              "  onced send jobs.jsonl --deadline 5m\n"
                              "  onced send jobs.jsonl --copies 2\n"
                              "  onced send --raw job.msgpack\n"
                              "  onced send jobs.jsonl --outbox demo.outbox\n"
                              "  onced send --resume --outbox demo.outbox\n");
  auto options = std::make_shared<SendOptions>();
  SenderOptions &sender = options->sender;
  CLI::App &app = *command.app;
  app.add_option("FILE", options->file,
                 "Jobs as JSON, one a line; - is standard input, the default (but with --outbox no terminal)");
  app.add_option("--jobs", sender.jobs_endpoint, "The worker's jobs endpoint")
      ->capture_default_str()
      ->type_name("ENDPOINT");
  app.add_option("--replies", sender.replies_endpoint, "The worker's replies endpoint")
      ->capture_default_str()
      ->type_name("ENDPOINT");
  add_duration(app, "--deadline", "Stop so long after the start, settled or not (default 60s)", options->deadline);
  add_whole(app, "--copies", options->copies, "Deliver each job so often", 1, copies_max)->capture_default_str();
  add_whole(app, "--window", sender.window_jobs, "Jobs in flight at most", 1, limits::window_jobs_max)
      ->capture_default_str();
  add_duration(app, "--acknowledgement-timeout",
               "Send a job again when so late; each time twice that, with jitter (default 1s)",
               sender.acknowledgement_timeout);
  add_duration(app, "--acknowledgement-timeout-max", "And at most so late (default 30s)",
               sender.acknowledgement_timeout_max);
  add_duration(app, "--ask-again", "Ask so often for the final outcome of an accepted job (default 30s)",
               sender.accepted_ask_again);
  app.add_option("--outbox", sender.outbox, "Keep jobs here until they are settled, and go on with those that are left")
      ->type_name("DIR");
  app.add_flag("--resume", options->resume, "With --outbox: read no jobs, only go on with those that are left");
  app.add_flag("--accept-loss", sender.outbox_accept_loss,
               "Open the outbox although jobs that it took may be missing, and go on with those that are left")
      ->needs("--outbox");
  app.add_flag("--stats", options->stats, "Print a last line of figures: outcomes, resends, rate, recovery time");
  app.add_flag("--shuffle", sender.lab.shuffle, "Lab: the jobs of each message in random order");
  add_share(app, "--loss", sender.lab.loss_share, "Lab: drop this share of the sends of jobs");
  app.add_flag("--lose-first-replies", sender.lab.lose_first_replies,
               "Lab: throw the first reply to each job away, as if it had not arrived");
  add_whole(app, "--seed", options->seed, "Lab: repeat the choices of --shuffle and --loss (default random)", 0,
            seed_max);
  app.add_flag("--raw", options->raw, "The file's bytes are one job, sent without looking into them");
  app.add_flag("--raw-message", options->raw_message, "The file's bytes are a whole message; there is no reply");
  add_kill_at(app, {"sender."}, sender.kill_switch);
  add_events(app, options->events);
  add_log_format(app, options->log_format);
  command.run = [options](Output &output) { return run_send(*options, output); };
}

void add_address(CLI::App &app, JobAddress &job) {
  app.add_option("OPERATION_ID", job.id, "Operation id; with --effect-key, an effect key")->required();
  app.add_option("--type", job.type, "Type of the job")->capture_default_str();
  app.add_flag("--effect-key", job.by_effect_key, "Look up by effect key instead of type and operation id");
}

void add_get(Commands &commands, CLI::App &root) {
  auto &command = add_command(commands, root, "get",
                              "Print the row of one operation; exit 1 if there is none, or it has no result.",
                              "  onced get demo-1 --data demo.data\n"
                              "  onced get demo-1 --type sum --replies tcp://127.0.0.1:5571\n"
                              "  onced get invoice-7 --effect-key --data demo.data\n");
  auto options = std::make_shared<GetOptions>();
  add_address(*command.app, options->job);
  add_target(command, options->target);
  command.run = [options](Output &output) { return run_get(*options, output); };
}

void add_count(Commands &commands, CLI::App &root) {
  auto &command = add_command(commands, root, "count", "Count results, dead letters and pending jobs by scanning.",
                              "  onced count --data demo.data\n"
                              "  onced count --replies tcp://127.0.0.1:5571 --deadline 5m\n");
  auto options = std::make_shared<CountOptions>();
  add_target(command, options->target);
  command.run = [options](Output &output) { return run_count(*options, output); };
}

CLI::Validator is_reason() {
  return CLI::IsMember({"conflict", "invalid", "failed", "expired"});
}

// The options of redrive and purge.
template <class RunChange> void add_dead_letter_change(Command &command, RunChange run_change) {
  auto options = std::make_shared<DeadLetterChangeOptions>();
  CLI::App &app = *command.app;
  app.add_option("ID", options->ids, "Ids of dead letters, 32 hexadecimal characters each");
  app.add_option("--reason", options->reason, "All of this outcome, instead of ids")->check(is_reason());
  app.add_option("--type", options->type, "With --reason: only those of this type of job");
  app.add_flag("--dry-run", options->dry_run, "Only print which they are");
  add_parsed(app, "--rate", "N/s", "So many a second at most (default no limit)", options->rate, parse_rate);
  app.add_option("--by", options->by, "Who makes the change; kept in the audit (required)")->type_name("WHO");
  app.add_option("--why", options->why, "Why, an incident's reference say; kept in the audit (required)")
      ->type_name("TEXT");
  app.add_option("--data", options->data, "Data directory, whether a worker runs on it or not (required)")
      ->type_name("DIR");
  add_duration(app, "--deadline", "Wait so long for an answer (default 10s)", options->deadline);
  command.required = {"--data"};
  command.run = [options, run_change](Output &output) { return run_change(*options, output); };
}

void add_dead_letters(Commands &commands, CLI::App &root) {
  CLI::App &parent = *root.add_subcommand("dead-letters", "List, show, redrive or purge dead letters.");
  parent.require_subcommand(1);
  parent.footer("Examples:\n  onced dead-letters list --data demo.data\n"
                "  onced dead-letters show 00112233445566778899aabbccddeeff --data demo.data\n"
                "  onced dead-letters redrive --reason failed --dry-run --data demo.data\n");
  auto &list = add_command(commands, parent, "list", "Print a line for each dead letter.",
                           "  onced dead-letters list --data demo.data\n"
                           "  onced dead-letters list --reason conflict --limit 10 --data demo.data\n"
                           "  onced dead-letters list --type sum --replies tcp://127.0.0.1:5571\n");
  auto list_options = std::make_shared<DeadLettersListOptions>();
  list.app->add_option("--reason", list_options->reason, "Only those of this outcome")->check(is_reason());
  list.app->add_option("--type", list_options->type, "Only those of this type of job");
  add_limit(*list.app, list_options->limit);
  add_target(list, list_options->target);
  list.run = [list_options](Output &output) { return run_dead_letters_list(*list_options, output); };

  auto &show = add_command(commands, parent, "show", "Print one dead letter with its original bytes; exit 1 if absent.",
                           "  onced dead-letters show 00112233445566778899aabbccddeeff --data demo.data\n");
  auto show_options = std::make_shared<DeadLettersShowOptions>();
  show.app->add_option("ID", show_options->id, "Its id, 32 hexadecimal characters")->required();
  add_target(show, show_options->target);
  show.run = [show_options](Output &output) { return run_dead_letters_show(*show_options, output); };

  auto &redrive = add_command(
      commands, parent, "redrive",
      "Settle dead letters anew; those that are stored or duplicate now are removed. Exit 1 if one stays.",
      "  onced dead-letters redrive 00112233445566778899aabbccddeeff --by kim --why INC-7 --data demo.data\n"
      "  onced dead-letters redrive --reason failed --type sum --dry-run --data demo.data\n"
      "  onced dead-letters redrive --reason failed --rate 50/s --by kim --why INC-7 --data demo.data\n");
  add_dead_letter_change(redrive, run_dead_letters_redrive);
  auto &purge =
      add_command(commands, parent, "purge", "Remove dead letters for good. Exit 1 if one is not found.",
                  "  onced dead-letters purge 00112233445566778899aabbccddeeff --by kim --why INC-7 --data demo.data\n"
                  "  onced dead-letters purge --reason invalid --dry-run --data demo.data\n");
  add_dead_letter_change(purge, run_dead_letters_purge);
}

void add_pending_resolve(Commands &commands, CLI::App &parent) {
  auto &command = add_command(
      commands, parent, "resolve", "Say what became of the unknown effect of a job that is held; exit 1 if none is.",
      "  onced pending resolve pay-7 --type pay --applied '{\"receipt\":12}' --by kim --why INC-7 --data demo.data\n"
      "  onced pending resolve pay-7 --type pay --absent --by kim --why INC-7 --data demo.data\n");
  auto options = std::make_shared<PendingResolveOptions>();
  CLI::App &app = *command.app;
  add_address(app, options->job);
  app.add_option("--applied", options->applied, "It took place, with this result: it is committed")->type_name("JSON");
  app.add_flag("--absent", options->absent, "It did not: the job waits in the queue again");
  app.add_option("--by", options->by, "Who says so; kept in the audit (required)")->type_name("WHO");
  app.add_option("--why", options->why, "Why, an incident's reference say; kept in the audit (required)")
      ->type_name("TEXT");
  app.add_option("--data", options->data, "Data directory, whether a worker runs on it or not (required)")
      ->type_name("DIR");
  add_duration(app, "--deadline", "Wait so long for an answer (default 10s)", options->deadline);
  command.required = {"--data", "--by", "--why"};
  command.run = [options](Output &output) { return run_pending_resolve(*options, output); };
}

void add_pending(Commands &commands, CLI::App &root) {
  CLI::App &parent = *root.add_subcommand("pending", "List or show queued jobs, or resolve one that is held.");
  parent.require_subcommand(1);
  parent.footer("Examples:\n  onced pending list --held --data demo.data\n"
                "  onced pending show pay-7 --type pay --data demo.data\n"
                "  onced pending resolve pay-7 --type pay --absent --by kim --why INC-7 --data demo.data\n");
  auto &list = add_command(commands, parent, "list", "Print a line for each queued job.",
                           "  onced pending list --data demo.data\n"
                           "  onced pending list --held --data demo.data\n"
                           "  onced pending list --type pay --limit 10 --replies tcp://127.0.0.1:5571\n");
  auto list_options = std::make_shared<PendingListOptions>();
  list.app->add_flag("--held", list_options->held_only, "Only those that wait for their owner to resolve them");
  list.app->add_option("--type", list_options->type, "Only those of this type of job");
  add_limit(*list.app, list_options->limit);
  add_target(list, list_options->target);
  list.run = [list_options](Output &output) { return run_pending_list(*list_options, output); };

  auto &show =
      add_command(commands, parent, "show", "Print one queued job with its errors and bytes; exit 1 if absent.",
                  "  onced pending show pay-7 --type pay --data demo.data\n"
                  "  onced pending show invoice-7 --effect-key --data demo.data\n");
  auto show_options = std::make_shared<PendingShowOptions>();
  add_address(*show.app, show_options->job);
  add_target(show, show_options->target);
  show.run = [show_options](Output &output) { return run_pending_show(*show_options, output); };

  add_pending_resolve(commands, parent);
}

void add_audit(Commands &commands, CLI::App &root) {
  auto &command = add_command(commands, root, "audit", "Print the changes that were made, oldest first.",
                              "  onced audit --data demo.data\n"
                              "  onced audit --after 120 --limit 10 --data demo.data\n");
  auto options = std::make_shared<AuditOptions>();
  CLI::App &app = *command.app;
  app.add_option("--data", options->data, "Data directory, whether a worker runs on it or not (required)")
      ->type_name("DIR");
  add_whole(app, "--after", options->after, "Only those after this number", 0, rows_max)->capture_default_str();
  add_limit(app, options->limit);
  add_duration(app, "--deadline", "Wait so long for an answer (default 10s)", options->deadline);
  command.required = {"--data"};
  command.run = [options](Output &output) { return run_audit(*options, output); };
}

void add_verify(Commands &commands, CLI::App &root) {
  auto &command =
      add_command(commands, root, "verify",
                  "Read a store with all its checksums and hold every row and counter against what it must be.",
                  "  onced verify --data demo.data\n");
  auto options = std::make_shared<VerifyOptions>();
  CLI::App &app = *command.app;
  app.add_option("--data", options->data, "Data directory, whether a worker runs on it or not (required)")
      ->type_name("DIR");
  add_duration(app, "--deadline", "Wait so long for a worker's answer (default 1h)", options->deadline);
  command.required = {"--data"};
  command.run = [options](Output &output) { return run_verify(*options, output); };
}

void add_stats(Commands &commands, CLI::App &root) {
  auto &command = add_command(commands, root, "stats", "Print what a running worker has counted since it started.",
                              "  onced stats --data demo.data\n"
                              "  onced stats --replies tcp://127.0.0.1:5571 --format prometheus\n");
  auto options = std::make_shared<StatsOptions>();
  add_parsed(*command.app, "--format", "json|prometheus", "Form of the output (default json)", options->format,
             [](const std::string &text) -> Result<StatsFormat> {
               if (text == "json") return StatsFormat::json;
               if (text == "prometheus") return StatsFormat::prometheus;
               return tl::unexpected(Error{ErrorCode::usage, "'" + text + "'", "no format", "json or prometheus"});
             });
  add_target(command, options->target);
  command.run = [options](Output &output) { return run_stats(*options, output); };
}

void add_bench(Commands &commands, CLI::App &root) {
  auto &command = add_command(commands, root, "bench",
                              "Measure this program on your own disk by share of duplicates: a table on stderr and, "
                              "where stdout is no terminal, a JSON line a run there.",
                              "  onced bench --quick\n"
                              "  onced bench --directory /var/lib/onced > rows.jsonl\n"
                              "  onced bench --quick --durability page-cache\n");
  auto options = std::make_shared<BenchOptions>();
  CLI::App &app = *command.app;
  app.add_flag("--quick", options->quick, "200,000 deliveries for each share, once, instead of 1,000,000 three times");
  app.add_option("--directory", options->directory, "Measure the disk of this directory; nothing is left there")
      ->capture_default_str()
      ->type_name("DIR");
  add_durability(app, options->durability);
  add_whole(app, "--workers", options->workers, "Worker threads", 1, limits::worker_threads_max)->capture_default_str();
  command.run = [options](Output &output) { return run_bench(*options, output); };
}

void add_rehearse(Commands &commands, CLI::App &root) {
  auto &command = add_command(commands, root, "rehearse",
                              "Play the scenarios of a plan with real processes that are killed, and write a record.",
                              "  onced rehearse tools/rehearsals/demo/plan.toml --out demo.record --fast\n"
                              "  onced rehearse plan.toml --only 'kill after commit'\n"
                              "  onced rehearse --list\n"
                              "  onced rehearse --verify demo.record\n"
                              "  onced rehearse --rerun demo.record\n"
                              "  onced rehearse --review demo.record --by Kim --decision accepted\n");
  auto options = std::make_shared<RehearseOptions>();
  CLI::App &app = *command.app;
  app.add_option("PLAN", options->plan, "The plan, a TOML file (docs/rehearsal-record.md)");
  app.add_option("--out", options->out,
                 "Write the record here, absent or empty (default NAME.record, of PLAN's folder)")
      ->type_name("DIR");
  app.add_option("--only", options->only, "Only this scenario of the plan")->type_name("SCENARIO");
  add_whole(app, "--seed", options->seed, "Repeat the choices of the lab's knobs", 0, seed_max)->capture_default_str();
  app.add_flag("--fast", options->fast, "A fifth of the plan's visibility timeout");
  app.add_flag("--list", options->list, "Print the scenarios there are");
  app.add_option("--verify", options->verify, "Whether a record's files and figures fit together; exit 1 if not")
      ->type_name("DIR");
  app.add_option("--rerun", options->rerun, "Play a record's plan again and compare; exit 1 if a fact differs")
      ->type_name("DIR");
  app.add_flag("--run-commands", options->run_commands,
               "The commands that the rerun's plan names may be run; without it they are only shown");
  app.add_option("--review", options->review, "Write a decision into a record that fits together; with the next three")
      ->type_name("DIR");
  app.add_option("--by", options->by, "Who has reviewed it")->type_name("WHO");
  app.add_option("--decision", options->decision, "accepted or rejected")->type_name("DECISION");
  app.add_option("--note", options->note, "Why; needed unless a passed record is accepted")->type_name("TEXT");
  command.run = [options](Output &output) { return run_rehearse(*options, output); };
}

// --- The configuration file --------------------------------------------------------------------------------------

// The long name without dashes where a configuration file may set the option; empty where it may not.
std::string setting_name(const CLI::Option &option) {
  if (option.get_lnames().empty()) return "";
  const std::string &name = option.get_lnames().front();
  return name == "help" || name == "config" ? "" : name;
}

SettingKind kind_of(const CLI::Option &option) {
  if (option.get_items_expected_max() == 0) return SettingKind::flag;
  const std::string type = option.get_type_name();
  const auto is = [&](std::string_view name) { return type.substr(0, name.size()) == name; };
  return is("UINT") ? SettingKind::integer : is("SIZE") || is("SHARE") ? SettingKind::quantity : SettingKind::text;
}

ConfigSchema schema_of(const Commands &commands) {
  ConfigSchema schema;
  for (const auto &command : commands) {
    SettingNames &names = schema[command->table()];
    for (const CLI::Option *option : std::as_const(*command->app).get_options()) {
      const std::string name = setting_name(*option);
      if (!name.empty()) names[name] = kind_of(*option);
    }
  }
  return schema;
}

// Whether the command line has settled the option: by naming it, or the one that excludes it.
bool is_settled(const Command &command, const std::string &option) {
  const auto given = [&](const std::string &name) { return command.app->get_option(name)->count() != 0; };
  const std::vector<std::string> &group = command.alternatives;
  const bool in_group = std::find(group.begin(), group.end(), option) != group.end();
  return given(option) || (in_group && std::any_of(group.begin(), group.end(), given));
}

// Gives the options that the command line left open the values of the file, through the same checks.
Result<void> apply_config(Command &command, const ConfigSchema &schema) {
  auto config = read_config(command.config_file, schema);
  if (!config) return tl::unexpected(config.error());
  if (command.take_handlers) command.take_handlers(*config);
  const auto table = config->tables.find(command.table());
  if (table == config->tables.end()) return {};
  std::map<std::string, Setting>
      open; // looked at before any is applied, as an applied one looks like one of the line's
  for (const auto &[name, setting] : table->second) {
    if (!is_settled(command, "--" + name)) open.emplace(name, setting);
  }
  for (const auto &[name, setting] : open) {
    CLI::Option *option = command.app->get_option("--" + name);
    try {
      option->add_result(setting.value);
      option->run_callback();
    } catch (const CLI::ParseError &error) {
      return tl::unexpected(config_error(command.config_file, setting.line, command.table() + "." + name, error.what(),
                                         "see onced " + command.name + " --help"));
    }
  }
  return {};
}

// --- The run -----------------------------------------------------------------------------------------------------

ExitCode usage_error(const std::string &message, const std::string &command) {
  tell_on_stderr(
      fmt::format("onced: {}; see onced {}--help\n", visible(message), command.empty() ? "" : command + " "));
  return ExitCode::usage;
}

// The words of the subcommand that was meant, as far as it was understood.
std::string name_of_parsed(const CLI::App &root) {
  std::string name;
  const CLI::App *app = &root;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    name.append(name.empty() ? "" : " ").append(app->get_name());
  }
  return name;
}

std::string first_line(const std::string &text) {
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> long_options(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options()) {
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> subcommands_of(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// The positional argument that an app takes; empty: none.
std::string positional_of(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options()) {
    if (option->get_positional()) return option->get_name(true, false);
  }
  return {};
}

std::string listed(const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

// What is wrong with the first word that the command line has and the command does not know.
std::string unknown_word(const CLI::App &app, const std::string &word) {
  const bool is_option = word.size() > 1 && word.front() == '-';
  const std::vector<std::string> names = is_option ? long_options(app) : subcommands_of(app);
  const std::string what = "'" + word + "' is no " + (is_option ? "option" : "subcommand") + " of " + app.get_name();
  if (!is_option && names.empty()) return "'" + word + "' is one argument too many";
  const std::string meant = suggestion_for(word.substr(0, word.find('=')), names);
  if (!meant.empty()) return what + "; did you mean " + meant + "?";
  const std::string positional = positional_of(app);
  if (is_option && !positional.empty()) {
    return what + "; if it is " + positional + ", write it last, after --";
  }
  return what + ", which has " + listed(names);
}

// CLI11's own words list what it does not know backwards, and name a missing argument before an unknown option.
std::string usage_problem(const CLI::App &root, const CLI::ParseError &error) {
  const bool may_be_unknown = dynamic_cast<const CLI::ExtrasError *>(&error) != nullptr ||
                              dynamic_cast<const CLI::RequiredError *>(&error) != nullptr;
  const CLI::App *app = &root;
  for (;;) {
    const std::vector<std::string> unknown = app->remaining();
    if (may_be_unknown && !unknown.empty()) return unknown_word(*app, unknown.front());
    if (app->get_subcommands().empty()) return first_line(error.what());
    app = app->get_subcommands().front();
  }
}

ExitCode run_command(Command &command, const ConfigSchema &schema, Output &output) {
  if (!command.config_file.empty()) {
    if (const auto applied = apply_config(command, schema); !applied) return report(applied.error());
  }
  for (const std::string &name : command.required) {
    if (command.app->get_option(name)->count() == 0) return usage_error(name + " is required", command.name);
  }
  return command.run(output);
}

ExitCode run(int argc, char **argv) {
  CLI::App root("onced: a durable, idempotent job worker in a single process.", "onced");
  root.footer("Examples:\n  onced serve --data demo.data\n  onced send jobs.jsonl\n  onced count --data demo.data\n"
              "  onced --version --json\n");
  bool version = false;
  bool json = false;
  root.add_flag("--version", version, "Print version, commit and libraries");
  root.add_flag("--json", json, "With --version: as one JSON object");
  Commands commands;
  add_serve(commands, root);
  add_send(commands, root);
  add_get(commands, root);
  add_count(commands, root);
  add_dead_letters(commands, root);
  add_pending(commands, root);
  add_audit(commands, root);
  add_stats(commands, root);
  add_verify(commands, root);
  add_bench(commands, root);
  add_rehearse(commands, root);
  const ConfigSchema schema = schema_of(commands);
  Output output(STDOUT_FILENO);
  try {
    root.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    output.text(root.help());
    const auto flushed = output.flush();
    return flushed ? ExitCode::ok : report(flushed.error());
  } catch (const CLI::ParseError &error) {
    return usage_error(usage_problem(root, error), name_of_parsed(root));
  }
  for (const auto &command : commands) {
    if (command->app->parsed() && !version && !json) return run_command(*command, schema, output);
  }
  const bool alone = root.get_subcommands().empty();
  if (version && alone) return run_version(json, output);
  return usage_error(alone ? "no subcommand is given" : "--version and --json go with no subcommand", "");
}

// Where a standard descriptor is closed, the next file that is opened would take its number, and our lines with it.
void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // Read-only, so that writing to a closed standard output fails as it should.
    static_cast<void>(::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

// Whether the system gave no thread, descriptor or memory.
bool is_lack(const std::exception &exception) {
  const auto *error = dynamic_cast<const std::system_error *>(&exception);
  if (error == nullptr) return false;
  constexpr std::array lacks{std::errc::resource_unavailable_try_again, std::errc::not_enough_memory,
                             std::errc::too_many_files_open, std::errc::too_many_files_open_in_system};
  return std::any_of(lacks.begin(), lacks.end(), [&](std::errc lack) { return error->code() == lack; });
}

} // namespace
} // namespace onced::tools

int main(int argc, char **argv) {
  using namespace onced::tools;
  hold_standard_descriptors();
  // What this process and the libraries make is for its user alone: results, jobs, records.
  ::umask(S_IRWXG | S_IRWXO);
  take_over_signals();
  leave_first_process();
  try {
    return static_cast<int>(run(argc, argv));
  } catch (const std::bad_alloc &) {
    return static_cast<int>(lacking("memory: this process cannot have more; raise its limits (ulimit -v and -d)"));
  } catch (const std::exception &exception) {
    try {
      if (is_lack(exception)) return static_cast<int>(lacking(exception.what()));
      return static_cast<int>(report({onced::ErrorCode::internal, "onced", exception.what(), "report this defect"}));
    } catch (...) {
      return static_cast<int>(ExitCode::internal);
    }
  }
}
