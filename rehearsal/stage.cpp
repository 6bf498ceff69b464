#include "rehearsal/stage.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "rehearsal/companion.hpp"
#include "rehearsal/conclusions.hpp"
#include "rehearsal/effects.hpp"
#include "rehearsal/text.hpp"
#include "wire/sockets.hpp"
#include "worker/delivery_events.hpp"

namespace onced::rehearsal {
namespace {

constexpr std::size_t marks_max = 1'000'000;

// A command with more options, before them an option that they do not give themselves.
Words with_default(Words command, const Words &more, const std::string &name, const std::string &value) {
  if (std::find(more.begin(), more.end(), name) == more.end()) command = command + Words{name, value};
  return command + more;
}

// How many events of this name a stream holds.
std::size_t count_of(std::string_view name, const std::filesystem::path &events) {
  std::ifstream file(events);
  std::size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    const Json event = parse_json(line);
    if (event.is_object() && text_in(event, "event") == name) ++count;
  }
  return count;
}

// Without what is no file, such as a socket.
void copy_files(const std::filesystem::path &from, const std::filesystem::path &to) {
  std::filesystem::create_directories(to);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(from)) {
    const std::filesystem::path target = to / entry.path().lexically_relative(from);
    if (entry.is_directory()) std::filesystem::create_directories(target);
    if (entry.is_regular_file()) std::filesystem::copy_file(entry.path(), target);
  }
}

} // namespace

Words operator+(Words left, const Words &right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::chrono::milliseconds Setting::visibility_timeout() const {
  return visibility_timeout_of(plan.worker, fast);
}

Stage::Stage(const Setting &setting, const ScenarioPlan &scenario, std::filesystem::path directory,
             std::filesystem::path sockets)
    : setting_(setting), scenario_(scenario), directory_(std::move(directory)), sockets_(std::move(sockets)) {
  std::filesystem::create_directories(directory_);
  std::filesystem::create_directories(sockets_);
}

Stage::~Stage() = default;

// --- Processes --------------------------------------------------------------------------------------------------

Child &Stage::start(const std::string &role, Words command, Child::OnLine on_line) {
  children_.push_back(std::make_unique<Child>(Child::Options{.role = role,
                                                             .command = std::move(command),
                                                             .log = directory_ / (role + ".log"),
                                                             .on_line = std::move(on_line)},
                                              setting_.patience));
  return *children_.back();
}

// --- Disks --------------------------------------------------------------------------------------------------------

const SmallDisk &Stage::use_small_disk() {
  if (!setting_.mounts_obstacle.empty()) throw StageUnavailable(setting_.mounts_obstacle);
  const SmallDisk &disk = small_disk_.emplace(directory_ / "disk");
  disk_root_ = disk.path();
  return disk;
}

CuttableDisk &Stage::use_cuttable_disk() {
  if (!setting_.mounts_obstacle.empty()) throw StageUnavailable(setting_.mounts_obstacle);
  CuttableDisk &disk = cuttable_disk_.emplace(directory_);
  disk_root_ = disk.path();
  return disk;
}

void Stage::cut_power(CuttableDisk &disk) {
  disk.cut();
  moments_.push_back({setting_.patience.clock().wall(), "power loss", "what was not synced is gone"});
  disk.power_on(setting_.patience);
}

void Stage::leave_disk() {
  if (disk_root_.empty()) return;
  const std::filesystem::path on_disk = data();
  disk_root_.clear();
  copy_files(on_disk, data());
  small_disk_.reset();
  cuttable_disk_.reset();
}

// --- The worker ---------------------------------------------------------------------------------------------------

std::string Stage::filled(const std::string &word) const {
  const std::map<std::string, std::string> values{{"{data}", data().string()},
                                                  {"{jobs}", jobs_endpoint()},
                                                  {"{replies}", replies_endpoint()},
                                                  {"{provider}", provider_url_}};
  std::string text;
  for (std::size_t at = 0; at < word.size();) {
    const auto named = std::find_if(values.begin(), values.end(), [&](const auto &value) {
      return word.compare(at, value.first.size(), value.first) == 0;
    });
    text += named == values.end() ? std::string(1, word[at]) : named->second;
    at += named == values.end() ? 1 : named->first.size();
  }
  return text;
}

Words Stage::filled(Words words) const {
  std::transform(words.begin(), words.end(), words.begin(), [this](const std::string &word) { return filled(word); });
  return words;
}

Words Stage::worker_command(const Words &more) const {
  const WorkerPlan &worker = setting_.plan.worker;
  if (setting_.is_foreign()) return filled(worker.command);
  const Words command{setting_.command, "serve",           "--data",    data(),
                      "--jobs",         jobs_endpoint(),   "--replies", replies_endpoint(),
                      "--durability",   worker.durability, "--seed",    std::to_string(setting_.seed),
                      "--events",       worker_events()};
  const Words configured = config_.empty() ? Words{} : Words{"--config", config_, "--log-format", "json"};
  return with_default(command + configured, more, "--workers", std::to_string(worker.threads));
}

void Stage::start_foreign_worker(std::size_t killed_at_mark) {
  std::filesystem::create_directories(data());
  worker_ = &start("worker", worker_command({}), [this, killed_at_mark](Child &worker, const std::string &line) {
    on_mark(worker, line, killed_at_mark);
  });
}

void Stage::start_worker(const Words &more) {
  if (setting_.is_foreign()) return start_foreign_worker(0);
  worker_ = &start("worker", worker_command(more));
  static_cast<void>(worker_->first_line());
}

void Stage::start_worker_to_be_killed(const std::string &point, std::size_t arrival) {
  kill_point_ = setting_.is_foreign() ? setting_.plan.worker.kill_when : point;
  if (kill_point_.empty()) throw StageFailure("the plan names no line at which to kill its worker");
  if (setting_.is_foreign()) return start_foreign_worker(arrival);
  start_worker({"--kill-at", point + ":" + std::to_string(arrival)});
}

// On the thread of the worker's output. A worker that is not to be killed goes on at once.
void Stage::on_mark(Child &worker, const std::string &line, std::size_t killed_at_mark) {
  const std::string &mark = setting_.plan.worker.kill_when;
  if (mark.empty() || line.rfind(mark, 0) != 0) return;
  std::size_t marks = 0;
  {
    const std::scoped_lock lock(mutex_);
    const std::size_t id = line.find_first_not_of(' ', mark.size());
    if (marks_.size() < marks_max)
      marks_.push_back({id == std::string::npos ? "" : line.substr(id), setting_.patience.clock().wall(), line});
    marks = marks_.size();
  }
  if (marks == killed_at_mark) {
    worker.signal(SIGKILL);
  } else {
    worker.answer();
  }
}

std::vector<Mark> Stage::marks() {
  const std::scoped_lock lock(mutex_);
  return marks_;
}

void Stage::supervise_crashing_worker(Child &sender, unsigned starts_max) {
  const std::string program = companion_of(setting_.command, "crashing");
  if (program.empty()) throw StageUnavailable("onced-crashing is not where onced is");
  for (unsigned starts = 0; sender.is_running(); ++starts) {
    if (starts == starts_max) throw StageFailure("the worker was ended by its handler time and again");
    worker_ = &start("worker", {program, "--data", data(), "--jobs", jobs_endpoint(), "--replies", replies_endpoint()});
    setting_.patience.wait_until([&] { return !sender.is_running() || !worker_->is_running(); },
                                 "the end of the sender, or of the worker");
  }
}

void Stage::stop_worker() {
  worker_->signal(SIGTERM);
  worker_->wait();
  if (!setting_.is_foreign() && worker_->end() != "exit 0")
    throw StageFailure("the worker ended with " + worker_->end());
}

void Stage::await_kill() {
  await_kill(*worker_, kill_point_);
}

void Stage::kill_worker(const std::string &point) {
  worker_->signal(SIGKILL);
  await_kill(*worker_, point);
}

// --- Handlers, and their provider ---------------------------------------------------------------------------------

// A text of JSON is one of TOML.
std::string Stage::table_of(const HandlerSetting &handler) const {
  const HandlerPlan &planned = setting_.plan.handler;
  const std::string table = "handlers." + Json(handler.type.empty() ? setting_.plan.seeds.type : handler.type).dump();
  std::ostringstream text;
  text << "[" << table << "]\n"
       << "command = " << Json(filled(handler.command.empty() ? planned.command : handler.command)) << '\n';
  for (const auto &[name, value] : handler.keys)
    text << name << " = " << value << '\n';
  text << "[" << table << ".environment]\n";
  for (const auto &[name, value] : planned.environment)
    text << Json(name) << " = " << Json(filled(value)) << '\n';
  return text.str();
}

void Stage::use_handler(const HandlerSetting &handler) {
  config_ = directory_ / "onced.toml";
  std::ofstream file(config_);
  file << table_of(handler);
  if (next_worker_ == nullptr) return;
  file << "[relays.next]\njobs = " << Json(next_endpoint("jobs")) << "\nreplies = " << Json(next_endpoint("replies"))
       << '\n';
}

void Stage::start_next_worker(const HandlerSetting &handler) {
  const std::filesystem::path config = directory_ / "next.toml";
  std::ofstream(config) << table_of(handler);
  next_worker_ =
      &start(std::string(next_worker_role),
             {setting_.command, "serve", "--data", directory_ / "next", "--jobs", next_endpoint("jobs"), "--replies",
              next_endpoint("replies"), "--durability", setting_.plan.worker.durability, "--config", config});
  static_cast<void>(next_worker_->first_line());
}

void Stage::stop_next_worker() {
  if (next_worker_ == nullptr) return;
  next_worker_->signal(SIGTERM);
  next_worker_->wait();
  if (next_worker_->end() != "exit 0") throw StageFailure("the next worker ended with " + next_worker_->end());
}

void Stage::await_next_results(std::uint64_t count) {
  setting_.patience.wait_until(
      [&] {
        return ask({setting_.command, "count", "--data", directory_ / "next"}).value("results", Json()) == count;
      },
      std::to_string(count) + " results of the next worker");
}

void Stage::start_provider(const Words &options) {
  const std::string port = provider_url_.substr(provider_url_.rfind(':') + 1);
  const Words command = setting_.plan.handler.provider + Words{"--state", effects_file()} +
                        (port.empty() ? Words{} : Words{"--port", port}) + options;
  provider_ = &start(std::string(provider_role), command);
  const Json ready = parse_json(provider_->first_line());
  if (!ready.is_object() || text_in(ready, "url").empty()) throw StageFailure("the provider printed no url");
  provider_url_ = text_in(ready, "url");
}

void Stage::stop_provider() {
  if (provider_ == nullptr) return;
  provider_->signal(SIGTERM);
  provider_->wait();
}

void Stage::await_effects(std::size_t count) {
  setting_.patience.wait_until([&] { return effects_in(effects_file(), {}, "").size() >= count; },
                               std::to_string(count) + " effects at the provider");
}

void Stage::resolve_held(std::size_t count) {
  std::vector<Json> held;
  setting_.patience.wait_until(
      [&] {
        held = printed_by({setting_.command, "pending", "list", "--held", "--data", data()});
        return held.size() >= count;
      },
      std::to_string(count) + " held jobs");
  for (const Json &job : held)
    resolve(job);
}

void Stage::resolve(const Json &held) {
  const std::string id = text_in(held, "operation_id");
  const auto job = std::find_if(seeds().begin(), seeds().end(), [&](const std::string &line) {
    return text_in(parse_json(line), "operation_id") == id;
  });
  if (job == seeds().end()) throw StageFailure("a job is held that was not sent");
  Words reconcile{"env", "ONCED_IDEMPOTENCY_KEY=" + idempotency_key_of(*job)};
  for (const auto &[name, value] : setting_.plan.handler.environment)
    reconcile.push_back(name + "=" + filled(value));
  const Json answer = ask(reconcile + filled(setting_.plan.handler.reconcile));
  if (!answer.is_object() || text_in(answer, "effect") != "applied" || !answer.contains("result"))
    throw StageFailure("the provider does not know of the effect of " + id);
  const std::string effect_key = text_in(held, "effect_key");
  const Words key = effect_key.empty() ? Words{id, "--type", text_in(held, "type")} : Words{effect_key, "--effect-key"};
  const Json resolved = ask(Words{setting_.command, "pending", "resolve"} + key +
                            Words{"--applied", answer["result"].dump(), "--by", "rehearsal", "--why",
                                  "the provider says so", "--data", data()});
  if (!resolved.is_object() || resolved.value("resolved", Json()) != true)
    throw StageFailure("the held job " + id + " was not resolved");
  ++resolved_;
}

void Stage::count_handled() {
  const Json stats = ask({setting_.command, "stats", "--data", data()});
  if (!stats.is_object()) throw StageFailure("the worker has told no figures");
  handled_ = Json::object();
  for (const std::string name : {"receives", "handled", "tried_again", "held", "late", "reconciled"})
    handled_[name] = stats.value("queue_" + name, std::uint64_t{0});
  handled_["resolved"] = resolved_;
}

std::vector<Json> Stage::late() const {
  std::vector<Json> late;
  std::ifstream file(directory_ / "worker.log");
  for (std::string line; std::getline(file, line);) {
    const Json event = parse_json(line);
    if (!event.is_object() || text_in(event, "event") != "handler.late") continue;
    late.push_back({{"at", event.at("time")},
                    {"operation_id", event.at("operation_id")},
                    {"receive", event.at("attempt")},
                    {"token", event.at("token")}});
  }
  return late;
}

// --- Senders ------------------------------------------------------------------------------------------------------

Child &Stage::start_sending(const Words &arguments) {
  const std::string patience_text = std::to_string(Patience::time_max.count()) + "s";
  sender_events_.push_back(directory_ / ("sender-" + std::to_string(sender_events_.size() + 1) + ".events.jsonl"));
  const Words command{setting_.command, "send",
                      "--jobs",         jobs_endpoint(),
                      "--replies",      replies_endpoint(),
                      "--seed",         std::to_string(setting_.seed),
                      "--deadline",     patience_text,
                      "--events",       sender_events_.back()};
  // By default nothing is sent again because of a late reply, which would be chance; so it is by the greeting of a
  // worker that was started again.
  return start("sender", with_default(command, arguments, "--acknowledgement-timeout", patience_text));
}

Child &Stage::start_sender(const std::vector<std::string> &jobs, const Words &more) {
  const std::filesystem::path input =
      directory_ / ("sender-" + std::to_string(sender_events_.size() + 1) + ".jobs.jsonl");
  std::ofstream file(input);
  for (const std::string &job : jobs)
    file << job << '\n';
  file.close();
  jobs_.insert(jobs_.end(), jobs.begin(), jobs.end());
  return start_sending(Words{input.string()} + more);
}

Child &Stage::start_raw_sender(const std::string &bytes) {
  const std::filesystem::path input = directory_ / ("sender-" + std::to_string(sender_events_.size() + 1) + ".raw");
  std::ofstream(input, std::ios::binary) << bytes;
  return start_sending({input.string(), "--raw"});
}

Child &Stage::resume_sender(const Words &more) {
  return start_sending(Words{"--resume"} + more);
}

void Stage::finish(Child &sender) {
  setting_.patience.wait_until([&] { return !sender.is_running() || !worker_->is_running(); }, "the end of the sender");
  if (sender.is_running()) throw StageFailure("the worker ended with " + worker_->end());
  sender.wait();
  for (const std::string &line : sender.lines()) {
    Json outcome = parse_json(line);
    if (!outcome.is_object() || !outcome.contains("outcome") || outcome["outcome"] == "unsettled") continue;
    told_.push_back(std::move(outcome));
  }
}

void Stage::kill(Child &sender, const std::string &point) {
  sender.signal(SIGKILL);
  await_kill(sender, point);
}

void Stage::await_kill(Child &sender, const std::string &point) {
  sender.wait();
  if (!sender.was_killed()) throw StageFailure("the " + sender.role() + " was not killed at " + point);
  kills_.push_back({&sender, point});
}

// --- Dead letters -------------------------------------------------------------------------------------------------

void Stage::send_in_parts(const std::string &job) {
  std::string bytes;
  nlohmann::json::to_msgpack(nlohmann::json::parse(job), bytes);
  zmq::context_t context;
  auto socket = wire::connect_jobs(context, jobs_endpoint());
  if (!socket) throw StageFailure(describe(socket.error()));
  socket->set(zmq::sockopt::linger, static_cast<int>(std::chrono::milliseconds(Patience::time_max).count()));
  socket->send(zmq::buffer(bytes), zmq::send_flags::sndmore);
  socket->send(zmq::str_buffer("a second frame"), zmq::send_flags::none);
  setting_.patience.wait_until([this] { return count().dead_letters > 0; }, "a dead letter of a message of two frames");
}

void Stage::redrive(const std::string &job) {
  const Json answer = ask({setting_.command, "dead-letters", "redrive", "--reason", "invalid", "--by", "rehearsal",
                           "--why", "its producer sends one frame now", "--data", data()});
  if (!answer.is_object() || !answer.contains("outcome")) throw StageFailure("the redrive printed no outcome");
  redriven_.push_back({Json::parse(job)["operation_id"], answer["outcome"], answer.dump()});
}

// --- Looking ------------------------------------------------------------------------------------------------------

void Stage::await_worker_events(std::string_view name, std::size_t count) {
  const std::string wanted = std::to_string(count) + " " + std::string(name) + " of the worker";
  setting_.patience.wait_until([&] { return count_of(name, worker_events()) >= count; }, wanted);
}

void Stage::await_sender_events(std::string_view name, std::size_t count) {
  const std::string wanted = std::to_string(count) + " " + std::string(name) + " of the sender";
  setting_.patience.wait_until([&] { return count_of(name, sender_events_.back()) >= count; }, wanted);
}

void Stage::end_all() {
  for (const auto &child : children_)
    child->kill_now();
}

bool Stage::has_found_key_under_lock() const {
  std::ifstream file(worker_events());
  for (std::string line; std::getline(file, line);) {
    if (const Json event = parse_json(line);
        event.is_object() && text_in(event, "branch") == worker::key_found_under_lock) {
      return true;
    }
  }
  return false;
}

Words Stage::count_command() const {
  if (setting_.is_foreign()) return filled(setting_.plan.worker.count);
  return {setting_.command, "count", "--data", data()};
}

// The lines that a command prints.
std::vector<Json> Stage::printed_by(const Words &command) {
  Child query({.role = "query", .command = command, .log = directory_ / "query.log", .on_line = {}}, setting_.patience);
  query.wait();
  std::vector<Json> printed;
  for (const std::string &line : query.lines())
    printed.push_back(parse_json(line));
  return printed;
}

// The first of them.
Json Stage::ask(const Words &command) {
  const std::vector<Json> printed = printed_by(command);
  if (printed.empty()) throw StageFailure("nothing was printed by " + joined(command));
  return printed.front();
}

EffectCounts Stage::count() {
  const Json counts = ask(count_command());
  const auto number = [&](const char *name) -> std::optional<std::uint64_t> {
    if (!counts.is_object() || !counts.contains(name) || !counts[name].is_number_unsigned()) return std::nullopt;
    return counts[name].get<std::uint64_t>();
  };
  const auto results = number("results");
  if (!results) throw StageFailure("the count query printed no results");
  return {.results = *results, .dead_letters = number("dead_letters").value_or(0)};
}

std::uint64_t Stage::count_before() {
  if (!setting_.is_foreign()) return std::filesystem::exists(data()) ? count().results : 0;
  std::filesystem::create_directories(data());
  const Words &query = setting_.plan.worker.count;
  const bool is_of_data = std::any_of(query.begin(), query.end(),
                                      [](const std::string &word) { return word.find("{data}") != std::string::npos; });
  try {
    return count().results;
  } catch (const StageFailure &) {
    if (!is_of_data || !std::filesystem::is_empty(data())) throw;
    return 0;
  }
}

std::uint64_t Stage::count_at_provider() const {
  return effects_in(effects_file(), {}, "").size();
}

// In the stream itself or, where nothing more could be written to it, in the log.
std::uint64_t Stage::events_dropped() const {
  std::vector<std::filesystem::path> files = sender_events_;
  files.insert(files.end(), {worker_events(), directory_ / "worker.log", directory_ / "sender.log"});
  std::uint64_t dropped = 0;
  for (const std::filesystem::path &path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const Json event = parse_json(line);
      if (!event.is_object() && line.find(" events.dropped dropped=") != std::string::npos) ++dropped; // a log as text
      if (!event.is_object() || text_in(event, "event") != "events.dropped") continue;
      const Json count = event.value("dropped", Json());
      dropped += count.is_number_unsigned() ? count.get<std::uint64_t>() : 1;
    }
  }
  return dropped;
}

} // namespace onced::rehearsal
