#include "store/unit_of_work.hpp"

#include <array>

namespace onced::store {

using engine::Failure;
using engine::Found;
using engine::Patience;

Result<UnitOfWork::Ended> UnitOfWork::run(const Kind &kind, const Step &step) {
  if (auto checked = context_.gate.check(); !checked) return tl::unexpected(checked.error());
  for (unsigned tries = 0; tries <= limits::commit_retries_max; ++tries) {
    begin(kind.sync);
    const bool has_rows = step();
    if (!failure_ && has_rows) {
      if (kind.before) context_.arrive(*kind.before);
      note(session_->commit());
      if (!failure_) {
        keep_written();
        if (kind.after) context_.arrive(*kind.after);
        return Ended::written;
      }
    }
    session_->abandon();
    reservations_.clear();
    if (!failure_) return Ended::nothing;
    if (failure_->kind == Failure::Kind::retry) continue;
    context_.gate.close(failure_->error);
    return tl::unexpected(failure_->error);
  }
  return Ended::contended;
}

void UnitOfWork::begin(engine::Sync sync) {
  now_ = context_.clock.wall();
  failure_.reset();
  reservations_.clear();
  calls_.clear();
  session_->begin(sync);
}

void UnitOfWork::keep_written() {
  for (Reservation &reservation : reservations_)
    reservation.keep();
  reservations_.clear();
  for (const auto &call : calls_)
    call();
  calls_.clear();
}

Found UnitOfWork::lock(engine::Family family, BytesView key) {
  const std::array<BytesView, 1> keys{key};
  if (!failure_) note(session_->lock(family, keys, Patience::wait, found_));
  return failure_ ? Found{.state = Found::State::damaged, .value = {}} : found_.front();
}

void UnitOfWork::claim(engine::Family family, std::span<const engine::Claim> claims, Patience patience,
                       std::vector<Found> &found) {
  if (!failure_) note(session_->claim(family, claims, patience, found));
  if (failure_) found.assign(claims.size(), {.state = Found::State::damaged, .value = {}});
}

void UnitOfWork::put_new(engine::Family family, BytesView key, BytesView value) {
  const std::array<engine::Claim, 1> claims{engine::Claim{.key = key, .value = value}};
  claim(family, claims, Patience::wait, found_);
  if (!failure_ && found_.front().state != Found::State::absent)
    failure_ = Failure{.kind = Failure::Kind::retry, .error = {}};
}

void UnitOfWork::put(engine::Family family, BytesView key, BytesView value) {
  if (!failure_) note(session_->put(family, key, value));
}

void UnitOfWork::erase(engine::Family family, BytesView key) {
  if (!failure_) note(session_->erase(family, key));
}

bool UnitOfWork::reserve(RowRoom &room, RowAmount amount) {
  auto reservation = Reservation::take(room, amount);
  if (!reservation) return false;
  reservations_.push_back(std::move(*reservation));
  return true;
}

} // namespace onced::store
