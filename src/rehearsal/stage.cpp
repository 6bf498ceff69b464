#include "rehearsal/stage.hpp"

#include <csignal>
#include <fstream>
#include <thread>
#include <utility>

#include "wire/sockets.hpp"

namespace onced::rehearsal {
namespace {

constexpr std::chrono::milliseconds pause_between_looks{5};

Words operator+(Words left, const Words &right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

void replace_all(std::string &text, const std::string &from, const std::string &to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::size_t settled_in(const std::filesystem::path &events, bool redelivered) {
  std::ifstream file(events);
  std::size_t settled = 0;
  for (std::string line; std::getline(file, line);) {
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object() || event.value("event", "") != "delivery.settled") continue;
    if (!redelivered || event.value("attempt", 0) > 1) ++settled;
  }
  return settled;
}

} // namespace

std::chrono::milliseconds Setting::visibility_timeout() const {
  return fast ? plan.worker.visibility_timeout / 5 : plan.worker.visibility_timeout;
}

Stage::Stage(const Setting &setting, const ScenarioPlan &scenario, std::filesystem::path directory,
             std::filesystem::path sockets)
    : setting_(setting), scenario_(scenario), directory_(std::move(directory)), sockets_(std::move(sockets)),
      threads_(setting.plan.worker.threads) {
  std::filesystem::create_directories(directory_);
  std::filesystem::create_directories(sockets_);
}

Stage::~Stage() = default;

Child &Stage::start(const std::string &role, Words command, Child::OnLine on_line) {
  children_.push_back(std::make_unique<Child>(Child::Options{.role = role,
                                                             .command = std::move(command),
                                                             .log = directory_ / (role + ".log"),
                                                             .on_line = std::move(on_line)},
                                              setting_.clock));
  return *children_.back();
}

// --- The worker ---------------------------------------------------------------------------------------------------

Words Stage::filled(Words words) const {
  for (std::string &word : words) {
    replace_all(word, "{data}", data().string());
    replace_all(word, "{jobs}", jobs_endpoint());
    replace_all(word, "{replies}", replies_endpoint());
  }
  return words;
}

Words Stage::worker_command() const {
  const WorkerPlan &worker = setting_.plan.worker;
  if (setting_.is_foreign()) return filled(worker.command);
  return {setting_.command, "serve",           "--data",     data(),          "--jobs",
          jobs_endpoint(),  "--replies",       replies_endpoint(), "--workers", std::to_string(threads_),
          "--durability",   worker.durability, "--seed",     std::to_string(setting_.seed), "--events",
          worker_events()};
}

void Stage::start_worker(const Words &more) {
  if (setting_.is_foreign()) {
    std::filesystem::create_directories(data());
    worker_ = &start("worker", worker_command(),
                     [this](Child &worker, const std::string &line) { on_mark(worker, line, false); });
    return;
  }
  worker_ = &start("worker", worker_command() + more);
  static_cast<void>(worker_->first_line());
}

void Stage::start_worker_to_be_killed(const std::string &point, const Words &more) {
  kill_point_ = point;
  // A retry by timeout and one by greeting may both be there: one thread answers them in order, so which outcome is told
  // first is no chance.
  threads_ = 1;
  if (!setting_.is_foreign()) return start_worker(more + Words{"--kill-at", point + ":1"});
  if (setting_.plan.worker.kill_when.empty()) throw StageFailure("the plan names no line at which to kill its worker");
  kill_point_ = setting_.plan.worker.kill_when;
  std::filesystem::create_directories(data());
  worker_ = &start("worker", worker_command(),
                   [this](Child &worker, const std::string &line) { on_mark(worker, line, true); });
}

// On the thread of the worker's output. A worker that is not to be killed goes on at once.
void Stage::on_mark(Child &worker, const std::string &line, bool kill) {
  const std::string &mark = setting_.plan.worker.kill_when;
  if (mark.empty() || line.rfind(mark, 0) != 0) return;
  {
    const std::scoped_lock lock(mutex_);
    const std::size_t id = line.find_first_not_of(' ', mark.size());
    marks_.push_back({id == std::string::npos ? "" : line.substr(id), setting_.clock.wall()});
  }
  if (kill) {
    worker.signal(SIGKILL);
  } else {
    worker.answer();
  }
}

std::vector<Mark> Stage::marks() {
  const std::scoped_lock lock(mutex_);
  return marks_;
}

void Stage::stop_worker() {
  worker_->signal(SIGTERM);
  worker_->wait();
}

void Stage::await_kill() {
  await_kill(*worker_, kill_point_);
}

// --- Senders ------------------------------------------------------------------------------------------------------

Child &Stage::start_sending(Words arguments) {
  sender_events_.push_back(directory_ / ("sender-" + std::to_string(sender_events_.size() + 1) + ".events.jsonl"));
  const Words common{setting_.command,
                     "send",
                     "--jobs",
                     jobs_endpoint(),
                     "--replies",
                     replies_endpoint(),
                     "--seed",
                     std::to_string(setting_.seed),
                     "--acknowledgement-timeout",
                     std::to_string(setting_.visibility_timeout().count()) + "ms",
                     "--deadline",
                     std::to_string(patience.count()) + "s",
                     "--events",
                     sender_events_.back()};
  return start("sender", common + arguments);
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
  const std::filesystem::path input =
      directory_ / ("sender-" + std::to_string(sender_events_.size() + 1) + ".raw");
  std::ofstream(input, std::ios::binary) << bytes;
  return start_sending({input.string(), "--raw"});
}

Child &Stage::resume_sender(const Words &more) {
  return start_sending(more);
}

void Stage::finish(Child &sender) {
  sender.wait();
  for (const std::string &line : sender.lines()) {
    Json outcome = Json::parse(line, nullptr, false);
    if (outcome.is_object() && outcome.contains("outcome")) told_.push_back(std::move(outcome));
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
  socket->set(zmq::sockopt::linger, static_cast<int>(std::chrono::milliseconds(patience).count()));
  socket->send(zmq::buffer(bytes), zmq::send_flags::sndmore);
  socket->send(zmq::str_buffer("a second frame"), zmq::send_flags::none);
  const MonotonicTime deadline = setting_.clock.monotonic() + patience;
  while (count().dead_letters == 0) {
    if (setting_.clock.monotonic() >= deadline) throw StageFailure("the message of two frames is no dead letter");
  }
}

void Stage::redrive(const std::string &job) {
  const Json answer = ask({setting_.command, "dead-letters", "redrive", "--reason", "invalid", "--by", "rehearsal",
                           "--why", "its producer sends one frame now", "--data", data()});
  if (!answer.is_object() || !answer.contains("outcome")) throw StageFailure("the redrive printed no outcome");
  redriven_.push_back({Json::parse(job)["operation_id"], answer["outcome"], answer.dump()});
}

// --- Looking ------------------------------------------------------------------------------------------------------

void Stage::await_settled(std::size_t deliveries, bool redelivered) {
  const MonotonicTime deadline = setting_.clock.monotonic() + patience;
  while (settled_in(worker_events(), redelivered) < deliveries) {
    if (setting_.clock.monotonic() >= deadline) {
      throw StageFailure("the worker did not settle " + std::to_string(deliveries) + " deliveries");
    }
    std::this_thread::sleep_for(pause_between_looks);
  }
}

void Stage::end_all() {
  for (const auto &child : children_) {
    child->signal(SIGKILL);
    child->wait();
  }
}

Words Stage::count_command() const {
  if (setting_.is_foreign()) return filled(setting_.plan.worker.count);
  return {setting_.command, "count", "--data", data()};
}

// The first line that a command prints.
Json Stage::ask(const Words &command) {
  Child query({.role = "query", .command = command, .log = directory_ / "query.log", .on_line = {}}, setting_.clock);
  Json answer = Json::parse(query.first_line(), nullptr, false);
  query.wait();
  return answer;
}

EffectCounts Stage::count() {
  const Json counts = ask(count_command());
  if (!counts.is_object() || !counts.contains("results")) throw StageFailure("the count query printed no results");
  return {.results = counts["results"], .dead_letters = counts.value("dead_letters", std::uint64_t{0})};
}

} // namespace onced::rehearsal
