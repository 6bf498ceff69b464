// Any bytes as a job. Verifies the canonical form against a second, slower implementation of its rules, that it is its
// own canonical form, that what is refused is refused for a reason that holds, that different keys and different
// intents never meet, and that `sum` adds exactly whatever the order. Not: the store.
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <variant>

#include "fuzz.hpp"
#include "onced/digest.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "onced/limits.hpp"

namespace onced::fuzz {
namespace {

using messagepack::Kind;
using messagepack::Token;
using messagepack::Writer;

// The canonical form by the rules of tests/vectors/README.md, with a tree of strings. UTF-8 is not looked at.
class Reference {
public:
  explicit Reference(const std::vector<Token> &tokens) : tokens_(tokens) {}

  // Of the next value; nothing where it has none.
  std::optional<Bytes> value() { // NOLINT(misc-no-recursion): the tokenizer has bounded the depth
    const Token &token = tokens_[next_++];
    Bytes out;
    Writer writer(out);
    switch (token.kind) {
    case Kind::nil:
      writer.nil();
      return out;
    case Kind::boolean:
      writer.boolean(token.number != 0);
      return out;
    case Kind::positive:
      writer.positive(token.number);
      return out;
    case Kind::negative:
      writer.integer(static_cast<std::int64_t>(token.number));
      return out;
    case Kind::floating:
      return floating(token.floating);
    case Kind::string:
      writer.string(token.bytes);
      return out;
    case Kind::binary:
      writer.binary(token.bytes);
      return out;
    case Kind::array:
      return array(token.number);
    case Kind::map:
      return map(token.number, {});
    case Kind::extension:
      return std::nullopt;
    }
    return std::nullopt;
  }

  // The payload of a job, which is the next value: its map without the names that are no payload.
  std::optional<Bytes> payload() {
    const Token &token = tokens_[next_++];
    if (token.kind != Kind::map) return std::nullopt;
    return map(token.number, {"operation_id", "type", "effect_key", "traceparent"});
  }

private:
  static std::optional<Bytes> floating(double number) {
    if (!std::isfinite(number)) return std::nullopt;
    Bytes out;
    if (std::fabs(number) <= std::ldexp(1.0, 53) && std::trunc(number) == number) {
      Writer(out).integer(static_cast<std::int64_t>(number));
    } else {
      Writer(out).floating(number);
    }
    return out;
  }

  std::optional<Bytes> array(std::uint64_t size) { // NOLINT(misc-no-recursion)
    Bytes out;
    Writer(out).array(size);
    for (; size > 0; --size) {
      const auto element = value();
      if (!element) return std::nullopt;
      out += *element;
    }
    return out;
  }

  std::optional<Bytes> map(std::uint64_t size, const std::set<BytesView> &left_out) { // NOLINT(misc-no-recursion)
    std::map<BytesView, Bytes> members;
    for (; size > 0; --size) {
      const Token &name = tokens_[next_++];
      if (name.kind != Kind::string) return std::nullopt;
      auto member = value();
      if (!member || !members.emplace(name.bytes, std::move(*member)).second) return std::nullopt;
    }
    for (const BytesView name : left_out)
      members.erase(name);
    Bytes out;
    Writer(out).map(members.size());
    for (const auto &[name, member] : members) {
      Writer(out).string(name);
      out += member;
    }
    return out;
  }

  const std::vector<Token> &tokens_;
  std::size_t next_ = 0;
};

// What was met before, as far as there is room: the same key or digest must not come from something else.
class Seen {
public:
  // `identity` is what the key or digest stands for.
  void add(BytesView name, Bytes identity, std::string_view property) {
    if (identity.size() > identity_bytes_max) return;
    const auto found = identities_.find(name);
    if (found == identities_.end()) {
      if (identities_.size() < identities_max) identities_.emplace(name, std::move(identity));
      return;
    }
    if (found->second == identity) return;
    std::fprintf(stderr, "fuzz: one is %s, the other %s\n", to_hex(found->second).c_str(), to_hex(identity).c_str());
    require(false, property);
  }

private:
  static constexpr std::size_t identity_bytes_max = 256;
  static constexpr std::size_t identities_max = 16'384;
  std::map<Bytes, Bytes, std::less<>> identities_;
};

// The parts, told apart by their lengths.
Bytes identity_of(const std::vector<std::string_view> &parts) {
  Bytes out;
  Writer writer(out);
  for (const std::string_view part : parts)
    writer.binary(part);
  return out;
}

class Jobs {
public:
  void read(BytesView bytes);

private:
  void check_refusal(BytesView bytes, JobDefect defect);
  void check_payload(BytesView bytes);
  void check_key();
  void check_digest();
  void check_sum();
  [[nodiscard]] std::optional<Bytes> sum_of(BytesView payload);

  JobParser parser_;
  JobParser other_parser_;
  Job job_;
  Digester digester_;
  Handlers handlers_ = built_in_handlers();
  Seen keys_;
  Seen digests_;
  std::vector<Token> tokens_;
};

void Jobs::read(BytesView bytes) {
  const auto parsed = parser_.parse(bytes, job_);
  if (!parsed) return check_refusal(bytes, parsed.error());
  check_payload(bytes);
  check_key();
  check_digest();
  check_sum();
}

void Jobs::check_refusal(BytesView bytes, JobDefect defect) {
  require(!name_of(defect).empty(), "a refusal has a reason");
  const bool whole = messagepack::tokenize(bytes, tokens_, bytes.size());
  const bool is_cut =
      defect == JobDefect::malformed || defect == JobDefect::trailing_bytes || defect == JobDefect::too_deep;
  if (is_cut) require(!whole, "bytes are no job for their form only where they are not one value");
  if (defect == JobDefect::not_a_map && whole) {
    require(tokens_.front().kind != Kind::map, "a map is not refused as none");
  }
  const bool has_no_form = defect == JobDefect::name_not_a_string || defect == JobDefect::duplicate_name ||
                           defect == JobDefect::not_finite || defect == JobDefect::extension_type;
  if (has_no_form && whole) require(!Reference(tokens_).value(), "a job without canonical form has none");
}

void Jobs::check_payload(BytesView bytes) {
  require(messagepack::tokenize(bytes, tokens_, bytes.size()), "a job is one value within the limits");
  require(Reference(tokens_).payload() == job_.payload, "the payload is the canonical form of the job's other fields");
  const auto canonical = other_parser_.canonical(job_.payload);
  require(canonical && *canonical == job_.payload, "the canonical form is its own");
  const auto whole = other_parser_.canonical(bytes);
  require(whole && *whole == Reference(tokens_).value(), "the canonical form of a whole job follows the same rules");
  Job again;
  require(other_parser_.parse(*other_parser_.canonical(bytes).map([](BytesView view) { return Bytes(view); }), again)
              .has_value(),
          "the canonical form of a job is a job");
  require(again.operation_id == job_.operation_id && again.type == job_.type && again.effect_key == job_.effect_key &&
              again.traceparent == job_.traceparent && again.payload == job_.payload,
          "a job read from its canonical form is the same");
}

void Jobs::check_key() {
  Key key;
  assign_key(job_, key);
  const std::string_view property = "two different operations or effects have two keys";
  if (!job_.effect_key.empty()) return keys_.add(key.bytes, identity_of({job_.effect_key}), property);
  keys_.add(key.bytes, identity_of({job_.type, job_.operation_id}), property);
  // Neighbours by which parts that are not told apart by their lengths would meet.
  const std::string both = job_.type + job_.operation_id;
  for (std::size_t cut = 1; cut < both.size() && cut <= limits::type_bytes_max; ++cut) {
    const std::size_t rest = both.size() - cut;
    if (cut == job_.type.size() || rest > limits::operation_id_bytes_max) continue;
    require(key_of_operation(both.substr(0, cut), both.substr(cut)) != key, property);
  }
  if (both.size() <= limits::effect_key_bytes_max) require(key_of_effect(both) != key, property);
  // And by which an id that looks like a length would be taken for one.
  const std::size_t id_bytes = job_.operation_id.size();
  if (id_bytes == limits::operation_id_bytes_max || job_.type.size() == limits::type_bytes_max) return;
  const Key longer_id = key_of_operation(job_.type, static_cast<char>(id_bytes) + job_.operation_id);
  require(key_of_operation(job_.type + static_cast<char>(id_bytes + 1), job_.operation_id) != longer_id, property);
}

void Jobs::check_digest() {
  const Digest digest = digester_.intent(job_.type, job_.payload);
  const std::string_view property = "two different intents have two digests";
  digests_.add(digest.view(), identity_of({job_.type, job_.payload}), property);
  if (job_.type.size() < limits::type_bytes_max) {
    const Bytes longer = job_.type + job_.payload.substr(0, 1);
    require(digester_.intent(longer, BytesView(job_.payload).substr(1)) != digest, property);
  }
}

// The result of `sum`, as the worker stores it; nothing where there is none.
std::optional<Bytes> Jobs::sum_of(BytesView payload) {
  const Job job{.operation_id = "o", .type = "sum", .effect_key = {}, .traceparent = {}, .payload = Bytes(payload)};
  const HandlerResult result = handlers_.run(job, other_parser_);
  if (const auto *invalid = std::get_if<Invalid>(&result)) require(!invalid->detail.empty(), "a refusal says why");
  if (const auto *failed = std::get_if<Failed>(&result)) require(!failed->detail.empty(), "a failure says why");
  const auto *done = std::get_if<Done>(&result);
  return done == nullptr ? std::nullopt : std::optional<Bytes>(done->result);
}

void Jobs::check_sum() {
  const auto sum = sum_of(job_.payload);
  if (sum) {
    const auto canonical = other_parser_.canonical(*sum);
    require(canonical && *canonical == *sum, "a result is its own canonical form");
  }
  // {"numbers": [...]} and nothing else: what `sum` takes.
  require(messagepack::tokenize(job_.payload, tokens_, job_.payload.size()), "a payload is one value");
  const bool is_for_sum = tokens_.size() >= 3 && tokens_[0].number == 1 && tokens_[1].bytes == "numbers" &&
                          tokens_[2].kind == Kind::array && tokens_.size() == 3 + tokens_[2].number;
  require(is_for_sum || !sum, "sum takes an array of numbers and nothing else");
  if (!is_for_sum) return;

  __extension__ using Wide = __int128;
  Wide total = 0;
  bool integers = true;
  Bytes reversed;
  Writer writer(reversed);
  writer.map(1).string("numbers").array(tokens_.size() - 3);
  for (std::size_t at = tokens_.size(); at > 3; --at) {
    const Token &token = tokens_[at - 1];
    switch (token.kind) {
    case Kind::positive:
      total += static_cast<Wide>(token.number);
      writer.positive(token.number);
      break;
    case Kind::negative:
      total += static_cast<std::int64_t>(token.number);
      writer.integer(static_cast<std::int64_t>(token.number));
      break;
    case Kind::floating:
      integers = false;
      writer.floating(token.floating);
      break;
    default:
      return require(!sum, "sum adds integers and floats only");
    }
  }
  require(sum_of(reversed) == sum, "a sum does not depend on the order of its numbers");
  if (!integers) return;
  std::optional<Bytes> expected;
  if (total >= INT64_MIN && total <= INT64_MAX) Writer(expected.emplace()).integer(static_cast<std::int64_t>(total));
  require(sum == expected, "a sum of integers is exact or refused");
}

} // namespace
} // namespace onced::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace onced::fuzz;
  static Jobs jobs;
  jobs.read(view_of(data, size));
  return 0;
}
