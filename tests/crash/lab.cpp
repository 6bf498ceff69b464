#include "crash/lab.hpp"

#include <algorithm>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "crash/scan.hpp"

namespace onced::crash {

using testing::Line;

Lab::Lab(const std::filesystem::path &directory, std::vector<std::string> wrapper, Tally &tally)
    : wrapper_(std::move(wrapper)), worker_(directory / "data"), tally_(tally) {
  std::filesystem::create_directories(directory);
  for (std::size_t number = 0; number < senders; ++number)
    senders_[number].outbox = directory / ("outbox-" + std::to_string(number));
}

std::unique_ptr<Process> Lab::run(const Arguments &arguments, const std::string &input) const {
  return std::make_unique<Process>(Process::Options{.arguments = arguments, .input = input, .wrapper = wrapper_});
}

// --- The worker -----------------------------------------------------------------------------------------------------

void Lab::start_worker(const Arguments &more) {
  worker_.start(more, wrapper_);
  worker_was_started_ = true;
  if (worker_.ready()["durability"] != "fsync") throw std::runtime_error("the worker promises too little");
}

void Lab::kill_worker() {
  watch_memory();
  worker_.kill_now();
  static_cast<void>(worker_was_killed());
}

bool Lab::worker_was_killed() {
  if (worker_runs()) return false;
  const testing::ExitStatus exit = worker_.process().wait();
  if (exit.signal != SIGKILL) throw std::runtime_error("the worker has ended by itself");
  return true;
}

void Lab::drain_worker() {
  watch_memory();
  const testing::ExitStatus exit = worker_.stop();
  if (exit.code != 0) throw std::runtime_error("the worker has not drained: " + exit.story);
}

// --- Senders --------------------------------------------------------------------------------------------------------

void Lab::start_sender(SenderNumber number, const std::vector<Job> &jobs, std::size_t copies, const std::string &input,
                       const Arguments &more) {
  Sender &sender = senders_.at(number);
  tally_.jobs += jobs.size();
  for (const Job &job : jobs)
    model_.offered(number, job, copies);
  Arguments arguments = worker_.send({"--outbox", sender.outbox.string(), "--stats"}) + more;
  if (!jobs.empty()) arguments = arguments + Arguments{"-", "--copies", std::to_string(copies)};
  sender.process = run(arguments, input);
}

std::vector<Job> Lab::take_not_taken(SenderNumber number) {
  return std::exchange(senders_.at(number).not_taken, {});
}

bool Lab::sender_runs(SenderNumber number) {
  return was_started(number) && senders_.at(number).process->is_running();
}

bool Lab::any_sender_runs() {
  for (std::size_t number = 0; number < senders; ++number) {
    if (sender_runs(number)) return true;
  }
  return false;
}

bool Lab::read_line(SenderNumber number) {
  const auto text = senders_.at(number).process->next_line();
  if (!text) return false;
  const Line line(*text);
  if (line["event"] == "stats") {
    read_stats(line);
  } else {
    model_.told(number, {line["operation_id"], line["outcome"], line["result"]});
  }
  return true;
}

void Lab::read_stats(const Line &line) {
  if (!recoveries_counted_ || line["recovery_ms_max"] == "null") return;
  tally_.recoveries.emplace_back(std::stoll(line["recovery_ms_max"]));
}

void Lab::read_lines(SenderNumber number, std::size_t lines) {
  while (lines > 0 && was_started(number) && read_line(number))
    --lines;
}

void Lab::kill_sender(SenderNumber number) {
  watch_memory();
  senders_.at(number).process->kill_now();
}

bool Lab::sender_ended(SenderNumber number) {
  watch_memory();
  Sender &sender = senders_.at(number);
  read_lines(number, std::numeric_limits<std::size_t>::max());
  const testing::ExitStatus exit = sender.process->wait();
  const bool killed = exit.signal == SIGKILL;
  // 1: one of its jobs was refused, as some are here.
  if (!killed && exit.code != 0 && exit.code != 1) throw std::runtime_error("a sender gave up: " + exit.story);
  auto not_taken = model_.sender_ended(number, !killed, scan_outbox(sender.outbox));
  std::move(not_taken.begin(), not_taken.end(), std::back_inserter(sender.not_taken));
  sender.process.reset();
  return killed;
}

void Lab::send_poison(const Bytes &bytes, bool wants_reply) {
  model_.poison_offered(bytes);
  poison_.emplace();
  poison_->bytes = bytes;
  poison_->wants_reply = wants_reply;
  poison_->process = run(worker_.send({wants_reply ? "--raw" : "--raw-message"}), bytes);
}

void Lab::poison_ended(bool killed) {
  if (!poison_) return;
  if (killed) poison_->process->kill_now();
  if (!killed && poison_->wants_reply) {
    const auto line = poison_->process->next_line();
    if (!line) throw std::runtime_error("bytes that are no job have no outcome: " + poison_->process->wait().story);
    model_.poison_told(poison_->bytes, Line(*line)["outcome"]);
  }
  static_cast<void>(poison_->process->wait());
  poison_.reset();
}

// --- Anything -------------------------------------------------------------------------------------------------------

void Lab::compare() {
  ++tally_.scans;
  model_.compare(scan(data()));
}

std::string Lab::state() {
  std::ostringstream text;
  const auto describe = [&](const std::string &name, Process &process) {
    text << "\n  " << name;
    if (process.is_running()) {
      text << " runs; stderr: " << process.errors();
    } else {
      text << " has ended: " << process.wait();
    }
  };
  if (worker_was_started_) describe("the worker", worker_.process());
  for (std::size_t number = 0; number < senders; ++number) {
    if (was_started(number)) describe("sender " + std::to_string(number), *senders_.at(number).process);
  }
  return text.str();
}

void Lab::watch_memory() {
  tally_.worker_peak_kib = std::max(tally_.worker_peak_kib, peak_memory_kib(worker_.process().id()));
  for (const Sender &sender : senders_) {
    if (sender.process == nullptr) continue;
    tally_.sender_peak_kib = std::max(tally_.sender_peak_kib, peak_memory_kib(sender.process->id()));
  }
}

} // namespace onced::crash
