#include "crash/changes.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include <zmq.h>

#include "crash/traffic.hpp"

namespace onced::crash {
namespace {

using testing::Line;

struct EndContext {
  void operator()(void *context) const { zmq_ctx_term(context); } // waits until all is sent
};
struct EndSocket {
  void operator()(void *socket) const { zmq_close(socket); }
};

// A message of two frames, which a worker refuses: the first becomes a dead letter. The command sends no such thing.
void send_two_frames(const std::string &endpoint, const Bytes &first) {
  const std::unique_ptr<void, EndContext> context(zmq_ctx_new());
  const std::unique_ptr<void, EndSocket> socket(zmq_socket(context.get(), ZMQ_PUSH));
  if (zmq_connect(socket.get(), endpoint.c_str()) != 0 ||
      zmq_send(socket.get(), first.data(), first.size(), ZMQ_SNDMORE) < 0 || zmq_send(socket.get(), "", 0, 0) < 0) {
    throw std::runtime_error("cannot send to " + endpoint);
  }
}

class Changes {
public:
  Changes(Lab &lab, Dice &dice, ChangeKill kill, std::string name)
      : lab_(lab), dice_(dice), kill_(std::move(kill)), name_(std::move(name)) {}

  bool run() {
    is_purge_ = dice_.one_in(2);
    const int parked = dice_.between(2, 3);
    const bool has_point = !kill_.point.empty();
    const int arrival = dice_.between(1, parked);
    lab_.start_worker(has_point ? Arguments{"--kill-at", kill_.point + ":" + std::to_string(arrival)} : Arguments{});
    for (int number = 0; number < parked; ++number)
      park(name_ + "-parked-" + std::to_string(number));
    choose(static_cast<std::size_t>(parked));
    const bool killed = change();
    if (lab_.worker_runs()) lab_.drain_worker();
    lab_.compare();
    return killed;
  }

private:
  void park(const std::string &operation_id) {
    const Job job = draw_job(dice_, operation_id);
    const Bytes bytes = messagepack_of(job);
    send_two_frames(lab_.jobs_endpoint(), bytes);
    const Arguments show{"dead-letters", "show", hex_of(letter_id_of(bytes)), "--data", lab_.data().string()};
    const bool shown = testing::eventually([&] { return lab_.run(show)->wait().code == 0; });
    if (!shown) throw std::runtime_error("a message of two frames is no dead letter");
    lab_.model().parked(job);
  }

  // At least so many, and some more.
  void choose(std::size_t least) {
    ids_ = lab_.model().changeable();
    if (is_purge_) dice_.shuffle(ids_);
    ids_.resize(std::min(ids_.size(), least + dice_.between<std::size_t>(0, 3)));
    for (const Bytes &id : ids_)
      lab_.model().change_asked(id, is_purge_);
  }

  bool change() {
    Arguments arguments{"dead-letters", is_purge_ ? "purge" : "redrive"};
    for (const Bytes &id : ids_)
      arguments.push_back(hex_of(id));
    arguments = arguments + Arguments{"--by", "campaign", "--why", name_, "--data", lab_.data().string()};
    const auto command = lab_.run(arguments);
    const std::size_t first = take_lines(*command, 1);
    if (kill_.who == ChangeKill::Who::worker) lab_.kill_worker();
    if (kill_.who == ChangeKill::Who::command) command->kill_now();
    take_lines(*command, ids_.size() - first);
    static_cast<void>(command->wait());
    if (told_ < ids_.size() && kill_.who != ChangeKill::Who::command) {
      throw std::runtime_error("a change of dead letters has no outcome: " + command->errors());
    }
    return lab_.worker_was_killed();
  }

  std::size_t take_lines(Process &command, std::size_t most) {
    std::size_t taken = 0;
    while (taken < most) {
      const auto text = command.next_line();
      if (!text) break;
      ++taken;
      ++told_;
      take(Line(*text));
    }
    return taken;
  }

  void take(const Line &line) {
    ++lab_.tally().changes;
    const auto id = std::find_if(ids_.begin(), ids_.end(), [&](const Bytes &one) { return hex_of(one) == line["id"]; });
    if (id == ids_.end()) throw std::runtime_error("a change that nobody asked for: " + line["id"]);
    const bool asked_twice = line["detail"].find("the request was made twice") != std::string::npos;
    lab_.model().change_told(*id, line["outcome"], line["removed"] == "true", asked_twice);
  }

  Lab &lab_;
  Dice &dice_;
  ChangeKill kill_;
  std::string name_;
  bool is_purge_ = false;
  std::vector<Bytes> ids_;
  std::size_t told_ = 0;
};

} // namespace

bool change_dead_letters(Lab &lab, Dice &dice, const ChangeKill &kill, const std::string &name) {
  return Changes(lab, dice, kill, name).run();
}

} // namespace onced::crash
