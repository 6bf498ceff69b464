#include "sender/outbox.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/messagepack.hpp"
#include "engine/outbox.hpp"
#include "onced/digest.hpp"
#include "onced/limits.hpp"
#include "onced/random.hpp"

namespace onced::sender {
namespace {

using engine::Family;
using messagepack::TokenReader;
using messagepack::Writer;

constexpr std::size_t key_bytes = 8;
constexpr std::size_t row_tokens_max = 8;
constexpr std::uint64_t row_version = 1;

// Big-endian, so that the order of the rows is that of the sequences.
using RowKey = std::array<char, key_bytes>;
RowKey key_of(Sequence sequence) {
  RowKey key{};
  std::uint64_t number = number_of(sequence);
  for (std::size_t at = key_bytes; at > 0; --at, number >>= 8U)
    key[at - 1] = static_cast<char>(number & 0xFFU);
  return key;
}
BytesView view_of(const RowKey &key) {
  return {key.data(), key.size()};
}
Sequence sequence_of(BytesView key) {
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < key.size(); ++at)
    number = (number << 8U) | static_cast<std::uint8_t>(key[at]);
  return Sequence{number};
}

void encode(const OutboxJob &job, Bytes &out) {
  out.clear();
  const auto issued_at_us = std::max<std::int64_t>(job.issued_at.time_since_epoch().count(), 0);
  Writer(out)
      .array(4)
      .positive(row_version)
      .binary(job.tag.view())
      .positive(static_cast<std::uint64_t>(issued_at_us))
      .binary(job.job);
}

struct RowView {
  Tag tag;
  WallTime issued_at;
  BytesView job;
};

// Reads one row after another and keeps its buffer between them.
class RowDecoder {
public:
  std::optional<RowView> decode(BytesView value) {
    if (!messagepack::tokenize(value, tokens_, row_tokens_max)) return std::nullopt;
    TokenReader reader(tokens_);
    reader.array(4);
    reader.require(reader.positive() == row_version);
    const auto tag = Tag::from(reader.binary());
    const std::uint64_t issued_at_us = reader.positive();
    const BytesView job = reader.binary();
    reader.require(tag && issued_at_us <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    // A longer one was never written, and could never be sent.
    reader.require(job.size() <= limits::job_bytes_max);
    if (!reader.at_end()) return std::nullopt;
    return RowView{*tag, WallTime{std::chrono::microseconds{static_cast<std::int64_t>(issued_at_us)}}, job};
  }

private:
  std::vector<messagepack::Token> tokens_;
};

// Rows in `meta`. Those that the engine keeps for itself are not among them.
constexpr std::string_view id_name = "sender_id";
constexpr std::string_view last_name = "last_sequence";

} // namespace

Outbox::Outbox(DirectoryLock lock) : lock_(std::move(lock)) {}
Outbox::~Outbox() = default;

Result<std::unique_ptr<Outbox>> Outbox::open(const std::filesystem::path &directory, const SenderId &fresh_id,
                                             std::shared_ptr<StorageEnvironment> environment, bool accept_loss) {
  auto lock = DirectoryLock::take(directory, DirectoryLock::Mode::exclusive);
  if (!lock) return tl::unexpected(lock.error());
  std::unique_ptr<Outbox> outbox(new Outbox(std::move(*lock)));
  auto engine =
      engine::open_outbox({.lock = outbox->lock_, .environment = std::move(environment), .accept_loss = accept_loss});
  if (!engine) return tl::unexpected(engine.error());
  outbox->engine_ = std::move(*engine);
  if (auto read = outbox->read_meta(fresh_id); !read) return tl::unexpected(read.error());
  if (auto counted = outbox->count_jobs(); !counted) return tl::unexpected(counted.error());
  if (auto begun = outbox->begin(); !begun) return tl::unexpected(begun.error());
  return outbox;
}

Result<void> Outbox::read_meta(const SenderId &fresh_id) {
  const auto view = engine_->view();
  const auto id = view->get(Family::meta, id_name);
  if (!id) return tl::unexpected(id.error());
  const auto last = view->get(Family::meta, last_name);
  if (!last) return tl::unexpected(last.error());
  // They are written together, before the first job.
  if (!*id && !*last) {
    id_ = fresh_id;
    return {};
  }
  const auto sender = *id ? SenderId::from(**id) : std::nullopt;
  if (!sender) return tl::unexpected(damaged("the row 'sender_id' of 'meta'"));
  const auto sequence = *last ? messagepack::decode_number(**last) : std::nullopt;
  if (!sequence) return tl::unexpected(damaged("the row 'last_sequence' of 'meta'"));
  id_ = *sender;
  found_.last_sequence = Sequence{*sequence};
  return {};
}

Result<void> Outbox::count_jobs() {
  RowDecoder decoder;
  Digester digester;
  std::optional<Error> damage;
  const auto scanned = engine_->view()->scan({.family = Family::queue}, [&](BytesView key, BytesView value) {
    auto row = decoder.decode(value);
    // A worker takes no job with the tag of other bytes: it would be sent for ever.
    if (row && row->tag != digester.tag(row->job)) row.reset();
    const bool known = key.size() == key_bytes && sequence_of(key) <= found_.last_sequence;
    if (!row || !known) {
      damage = damaged("the job " + to_hex(key));
      return false;
    }
    ++found_.jobs;
    found_.bytes += row->job.size();
    return true;
  });
  if (!scanned) return tl::unexpected(scanned.error());
  if (damage) return tl::unexpected(*damage);
  return {};
}

// Its rows are written when it has begun its boot.
Result<void> Outbox::begin() {
  SystemRandom random;
  if (auto boot = engine_->begin_boot(0, random); !boot) return tl::unexpected(boot.error());
  appending_ = engine_->session();
  removing_ = engine_->session();
  auto begun = write(*appending_, engine::Sync::stable, [&](engine::Session &session) {
    auto step = session.put(Family::meta, id_name, id_.view());
    return step ? session.put(Family::meta, last_name, messagepack::encode_number(number_of(found_.last_sequence)))
                : step;
  });
  if (auto healthy = engine_->health(); !begun && !healthy) return healthy; // which says what is damaged
  return begun;
}

// What is not where the next opening looks is not kept: the engine sees to it.
Result<void> Outbox::write(engine::Session &session, engine::Sync sync, const Put &put) {
  session.begin(sync);
  auto step = put(session);
  if (step) step = session.commit();
  if (step) return {};
  session.abandon();
  return tl::unexpected(step.error().error);
}

Result<void> Outbox::append(std::span<const OutboxJob> jobs, Sequence last_sequence) {
  return write(*appending_, engine::Sync::stable, [&](engine::Session &session) {
    engine::Step step;
    Bytes value;
    for (const OutboxJob &job : jobs) {
      encode(job, value);
      if (step) step = session.put(Family::queue, view_of(key_of(job.sequence)), value);
    }
    // In the same write, so that a sequence is never used again, whatever is removed.
    return step ? session.put(Family::meta, last_name, messagepack::encode_number(number_of(last_sequence))) : step;
  });
}

Result<void> Outbox::remove(std::span<const Sequence> sequences) {
  const std::scoped_lock lock(removing_mutex_);
  return write(*removing_, engine::Sync::page_cache, [&](engine::Session &session) {
    engine::Step step;
    for (const Sequence sequence : sequences) {
      if (step) step = session.erase(Family::queue, view_of(key_of(sequence)));
    }
    return step;
  });
}

Result<Outbox::Read> Outbox::read_after(Sequence after, std::size_t jobs_max, std::size_t bytes_max) const {
  Read read{.jobs = {}, .at_end = true};
  RowDecoder decoder;
  std::optional<Error> damage;
  std::size_t bytes = 0;
  const RowKey from = key_of(Sequence{number_of(after) + 1});
  const auto visit = [&](BytesView key, BytesView value) {
    const auto row = decoder.decode(value);
    if (!row || key.size() != key_bytes) {
      damage = damaged("the job " + to_hex(key));
      return false;
    }
    read.at_end = read.jobs.size() < jobs_max && row->job.size() <= bytes_max - bytes;
    if (!read.at_end) return false;
    bytes += row->job.size();
    read.jobs.push_back({sequence_of(key), row->tag, row->issued_at, Bytes(row->job)});
    return true;
  };
  const auto scanned = engine_->view()->scan({.family = Family::queue, .from = view_of(from)}, visit);
  if (!scanned) return tl::unexpected(scanned.error());
  if (damage) return tl::unexpected(*damage);
  return read;
}

Error Outbox::damaged(const std::string &what) const {
  return {.code = ErrorCode::corrupt,
          .concerns = engine_->place(),
          .cause = what + " cannot be read",
          .remedy = "restore the outbox from a copy, or send its jobs again from their source with a new one: nothing "
                    "is done twice"};
}

} // namespace onced::sender
