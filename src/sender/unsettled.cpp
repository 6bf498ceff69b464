#include <array>

#include "onced/sender.hpp"

namespace onced {
namespace {

struct Words {
  UnsettledCause cause;
  std::string_view name;
  std::string_view says;
  std::string_view remedy = {}; // empty: there is nothing to be done
};

constexpr std::array<Words, 10> words_of_causes{{
    {UnsettledCause::no_worker, "no_worker", "nobody listens there", "start the worker, or give its endpoints"},
    {UnsettledCause::no_answer, "no_answer", "somebody listens there, and does not answer as a worker does",
     "check that a worker has this endpoint, and that it is not stopped"},
    {UnsettledCause::not_a_worker, "not_a_worker", "who listens there has ended the connection: it is no such socket",
     "check the endpoints: perhaps jobs and replies are exchanged, or another program has this one"},
    {UnsettledCause::worker_opening, "worker_opening", "the worker opens its store"},
    {UnsettledCause::worker_full, "worker_full", "the disk of the worker is full",
     "make room there: the worker then goes on by itself"},
    {UnsettledCause::worker_unavailable, "worker_unavailable", "the store of the worker has failed",
     "onced stats says why; once that is mended the worker goes on by itself"},
    {UnsettledCause::worker_draining, "worker_draining", "the worker is about to end", "start it again"},
    {UnsettledCause::no_reply, "no_reply", "no reply has come yet"},
    {UnsettledCause::busy, "busy", "the worker is busy"},
    {UnsettledCause::accepted, "accepted", "the worker has accepted the job, which waits there for its handler",
     "onced pending list says where it is"},
}};

constexpr bool in_order() {
  for (std::size_t at = 0; at < words_of_causes.size(); ++at) {
    if (static_cast<std::size_t>(words_of_causes[at].cause) != at) return false;
  }
  return true;
}
static_assert(in_order(), "each cause is found by its number");

const Words &words_of(UnsettledCause cause) {
  return words_of_causes[static_cast<std::size_t>(cause)];
}

} // namespace

std::string_view name_of(UnsettledCause cause) {
  return words_of(cause).name;
}

std::string describe(const Unsettled &unsettled) {
  const Words &words = words_of(unsettled.cause);
  std::string text = unsettled.endpoint.empty() ? std::string() : unsettled.endpoint + ": ";
  text.append(words.says);
  if (!unsettled.detail.empty()) text.append(" (").append(unsettled.detail).append(")");
  if (!words.remedy.empty()) text.append("; ").append(words.remedy);
  return text;
}

} // namespace onced
