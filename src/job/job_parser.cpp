#include <optional>

#include <msgpack.hpp>

#include "base/utf8.hpp"
#include "job/canonical.hpp"
#include "onced/job.hpp"
#include "onced/limits.hpp"

// Bytes may have several defects. The one reported is, in this order:
//   1. too_large;
//   2. the first that reading from the first byte on meets: malformed, too_deep, not_a_map, name_not_a_string,
//      invalid_utf8, not_finite, extension_type. Of several at one value, its place counts before what it is: not_a_map
//      and name_not_a_string, then too_deep, then the others;
//   3. trailing_bytes;
//   4. duplicate_name, at whatever depth;
//   5. the job's own fields, in the order operation_id, type, effect_key, traceparent.

namespace onced {
namespace {

// A field of a job that is no payload.
struct OwnField {
  std::string_view name;
  std::size_t bytes_min;
  std::size_t bytes_max;
  JobDefect bad;
  std::string Job::*place;
};

constexpr std::size_t operation_id_field = 0;
constexpr std::array<OwnField, 4> own_fields{{
    {"operation_id", 1, limits::operation_id_bytes_max, JobDefect::bad_operation_id, &Job::operation_id},
    {"type", 1, limits::type_bytes_max, JobDefect::bad_type, &Job::type},
    {"effect_key", 1, limits::effect_key_bytes_max, JobDefect::bad_effect_key, &Job::effect_key},
    {"traceparent", 0, limits::traceparent_bytes_max, JobDefect::bad_traceparent, &Job::traceparent},
}};
constexpr std::size_t no_own_field = own_fields.size();

std::size_t own_field_named(std::string_view name) {
  std::size_t field = 0;
  while (field < own_fields.size() && own_fields[field].name != name) {
    ++field;
  }
  return field;
}

// Canonical offsets have 32 bits, and a 5-byte float may become a 9-byte integer.
constexpr std::size_t value_bytes_max = std::size_t{1} << 31U;

// Follows msgpack-c's parser through a value and writes its canonical form. Returning false stops the parser.
class MembersVisitor final : public msgpack::null_visitor {
public:
  // With `job`, the value is a job and its own fields go there; without, any value will do.
  MembersVisitor(CanonicalWriter &writer, Job *job)
      : writer_(writer), job_(job), place_(job == nullptr ? Place::value : Place::job) {}

  bool visit_nil() { return admit() && (writer_.nil(), true); }
  bool visit_boolean(bool value) { return admit() && (writer_.boolean(value), true); }
  bool visit_positive_integer(std::uint64_t value) { return admit() && (writer_.positive(value), true); }
  // msgpack-c calls this for every signed form, also with values of 0 and more.
  bool visit_negative_integer(std::int64_t value) { return admit() && (writer_.integer(value), true); }
  bool visit_float32(float value) { return visit_float64(static_cast<double>(value)); }
  bool visit_float64(double value) { return admit() && (writer_.floating(value) || refuse(JobDefect::not_finite)); }
  bool visit_str(const char *data, std::uint32_t size) {
    if (place_ == Place::job) return admit();
    const std::string_view text(data, size);
    if (!utf8::valid(text)) return refuse(JobDefect::invalid_utf8);
    if (place_ == Place::name) return name(text);
    writer_.string(text);
    return true;
  }
  bool visit_bin(const char *data, std::uint32_t size) { return admit() && (writer_.binary({data, size}), true); }
  bool visit_ext(const char *, std::uint32_t) { return admit() && refuse(JobDefect::extension_type); }

  bool start_array(std::uint32_t size) {
    if (!admit() || !descend()) return false;
    writer_.array_head(size);
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }

  bool start_map(std::uint32_t pairs) {
    if (place_ != Place::job && !admit()) return false;
    if (!descend()) return false;
    place_ = Place::value;
    if (!in_own_map()) writer_.map_head(pairs);
    writer_.begin_entries();
    return true;
  }
  bool start_map_key() {
    place_ = Place::name;
    return true;
  }
  bool end_map_key() {
    place_ = Place::value;
    return true;
  }
  bool end_map_value() {
    if (in_own_map() && field_ != no_own_field) {
      take_field();
    } else {
      writer_.end_value();
    }
    return true;
  }
  bool end_map() {
    --depth_;
    pairs_ = writer_.end_entries();
    return true;
  }

  // What stopped the parser; nothing where the bytes themselves did.
  [[nodiscard]] std::optional<JobDefect> defect() const { return defect_; }
  // The first defect beyond reading: of names, then of the job's own fields.
  [[nodiscard]] std::optional<JobDefect> later_defect() const;
  // After a job: the entries of its payload.
  [[nodiscard]] std::uint32_t payload_pairs() const { return pairs_; }

private:
  enum class Place : std::uint8_t { value, name, job };
  struct FieldState {
    bool seen = false;
    bool bad = false;
  };

  bool refuse(JobDefect defect) {
    defect_ = defect;
    return false;
  }
  // Whether a value other than a string or a job's map may stand here.
  bool admit() {
    if (place_ == Place::value) return true;
    return refuse(place_ == Place::name ? JobDefect::name_not_a_string : JobDefect::not_a_map);
  }
  bool descend() { return ++depth_ <= limits::nesting_max || refuse(JobDefect::too_deep); }
  [[nodiscard]] bool in_own_map() const { return depth_ == 1 && job_ != nullptr; }
  bool name(std::string_view text);
  void take_field();

  CanonicalWriter &writer_;
  Job *job_;
  Place place_;
  std::size_t depth_ = 0;
  std::uint32_t pairs_ = 0;
  std::size_t field_ = no_own_field; // the own field whose value is being read
  std::size_t field_begin_ = 0;      // where that value lies in the writer
  std::array<FieldState, own_fields.size()> fields_{};
  bool field_twice_ = false;
  std::optional<JobDefect> defect_;
};

bool MembersVisitor::name(std::string_view text) {
  if (in_own_map()) {
    field_ = own_field_named(text);
    if (field_ != no_own_field) {
      field_twice_ = field_twice_ || fields_[field_].seen;
      fields_[field_].seen = true;
      field_begin_ = writer_.size();
      return true;
    }
  }
  writer_.name(text);
  return true;
}

void MembersVisitor::take_field() {
  const OwnField &field = own_fields[field_];
  const std::string_view value = canonical_string_at(writer_.from(field_begin_).data());
  if (value.data() == nullptr || value.size() < field.bytes_min || value.size() > field.bytes_max) {
    fields_[field_].bad = true;
  } else {
    (job_->*field.place).assign(value);
  }
  writer_.cut(field_begin_);
}

std::optional<JobDefect> MembersVisitor::later_defect() const {
  if (field_twice_ || writer_.has_duplicate_names()) return JobDefect::duplicate_name;
  if (job_ == nullptr) return std::nullopt;
  if (!fields_[operation_id_field].seen) return JobDefect::no_operation_id;
  for (std::size_t field = 0; field < own_fields.size(); ++field) {
    if (fields_[field].bad) return own_fields[field].bad;
  }
  return std::nullopt;
}

tl::expected<void, JobDefect> read(BytesView bytes, MembersVisitor &visitor) {
  std::size_t offset = 0;
  if (!msgpack::parse(bytes.data(), bytes.size(), offset, visitor)) {
    return tl::unexpected(visitor.defect().value_or(JobDefect::malformed));
  }
  if (offset != bytes.size()) return tl::unexpected(JobDefect::trailing_bytes);
  if (const auto defect = visitor.later_defect()) return tl::unexpected(*defect);
  return {};
}

} // namespace

class JobParser::Impl {
public:
  CanonicalWriter writer;
};

JobParser::JobParser() : impl_(std::make_unique<Impl>()) {}
JobParser::~JobParser() = default;
JobParser::JobParser(JobParser &&) noexcept = default;
JobParser &JobParser::operator=(JobParser &&) noexcept = default;

tl::expected<void, JobDefect> JobParser::parse(BytesView bytes, Job &job) {
  if (bytes.size() > limits::job_bytes_max) return tl::unexpected(JobDefect::too_large);
  job.operation_id.clear();
  job.type = "sum";
  job.effect_key.clear();
  job.traceparent.clear();
  // How many fields are payload shows at the end, so the head of the payload is written last, in front.
  CanonicalWriter &writer = impl_->writer;
  writer.restart(CanonicalWriter::map_head_bytes_max);
  MembersVisitor visitor(writer, &job);
  return read(bytes, visitor).map([&] {
    job.payload.assign(writer.from(writer.map_head_in_front(visitor.payload_pairs())));
  });
}

tl::expected<BytesView, JobDefect> JobParser::canonical(BytesView value) {
  if (value.size() > value_bytes_max) return tl::unexpected(JobDefect::too_large);
  impl_->writer.restart(0);
  MembersVisitor visitor(impl_->writer, nullptr);
  return read(value, visitor).map([&] { return impl_->writer.from(0); });
}

} // namespace onced
