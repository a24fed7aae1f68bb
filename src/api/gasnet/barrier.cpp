#include "api/gasnet/barrier.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "api/gasnet/interface.hpp"

namespace apenet::gasnet {

BarrierName BarrierName::of(int id, int flags) {
  if ((flags & GASNET_BARRIERFLAG_MISMATCH) != 0) return {BarrierKind::mismatch, 0};
  if ((flags & GASNET_BARRIERFLAG_ANONYMOUS) != 0) return {BarrierKind::anonymous, 0};
  return {BarrierKind::named, id};
}

BarrierName BarrierName::with(const BarrierName& other) const {
  if (kind == BarrierKind::anonymous) return other;
  if (other.kind == BarrierKind::anonymous || *this == other) return *this;
  return {BarrierKind::mismatch, 0};
}

Barrier::Barrier(std::uint32_t rank, std::uint32_t rank_count, Tell tell)
    : rank_(rank),
      rank_count_(rank_count),
      rounds_(static_cast<std::uint32_t>(std::bit_width(rank_count - 1))),
      tell_(std::move(tell)) {
  for (std::vector<Round>& rounds : heard_) rounds.resize(rounds_);
}

void Barrier::notify(BarrierName own) {
  is_notified_ = true;
  known_ = own;
  rounds_done_ = 0;
  if (rounds_ > 0) tell_((rank_ + 1) % rank_count_, phase_, 0, known_);
  advance();
}

void Barrier::heard(std::uint32_t phase, std::uint32_t round, BarrierName name) {
  heard_[phase][round] = {true, name};
  if (is_notified_ && phase == phase_) advance();
}

void Barrier::advance() {
  while (rounds_done_ < rounds_ && heard_[phase_][rounds_done_].is_heard) {
    known_ = known_.with(heard_[phase_][rounds_done_].name);
    if (++rounds_done_ < rounds_)
      tell_((rank_ + (1U << rounds_done_)) % rank_count_, phase_, rounds_done_, known_);
  }
}

BarrierName Barrier::finish() {
  std::ranges::fill(heard_[phase_], Round{});
  phase_ = 1 - phase_;
  is_notified_ = false;
  return last_ = known_;
}

}  // namespace apenet::gasnet
