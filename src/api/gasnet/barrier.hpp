// Barrier: GASNet's split-phase barrier, by dissemination: in round k each process sends the one 2^k
// further what it knows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace apenet::gasnet {

enum class BarrierKind : std::uint8_t { anonymous, named, mismatch };

// What a process, or all those that it has heard of, called the barrier. Combining is commutative,
// associative and idempotent, so the order of arrivals does not matter, nor does hearing of a process twice.
struct BarrierName {
  BarrierKind kind = BarrierKind::anonymous;
  std::int32_t id = 0;

  [[nodiscard]] static BarrierName of(int id, int flags);
  [[nodiscard]] BarrierName with(const BarrierName& other) const;
  [[nodiscard]] bool operator==(const BarrierName&) const = default;
};

class Barrier {
 public:
  // tell(target, phase, round, name) sends one message; the other end calls heard().
  using Tell =
      std::function<void(std::uint32_t target, std::uint32_t phase, std::uint32_t round, BarrierName)>;

  Barrier(std::uint32_t rank, std::uint32_t rank_count, Tell tell);

  // Requires !is_notified().
  void notify(BarrierName own);
  void heard(std::uint32_t phase, std::uint32_t round, BarrierName name);
  [[nodiscard]] bool is_notified() const { return is_notified_; }
  // Whether all have notified. Requires is_notified().
  [[nodiscard]] bool is_complete() const { return rounds_done_ == rounds_; }
  // Ends the phase. Requires is_complete(). What all called it.
  BarrierName finish();
  // Name of the phase that was finished last.
  [[nodiscard]] BarrierName last() const { return last_; }

 private:
  struct Round {
    bool is_heard = false;
    BarrierName name;
  };
  void advance();

  std::uint32_t rank_;
  std::uint32_t rank_count_;
  std::uint32_t rounds_ = 0;
  Tell tell_;
  std::uint32_t phase_ = 0;  // 0 or 1: no process is two phases ahead
  bool is_notified_ = false;
  std::uint32_t rounds_done_ = 0;
  BarrierName known_;
  BarrierName last_{BarrierKind::mismatch, 0};
  std::array<std::vector<Round>, 2> heard_;
};

}  // namespace apenet::gasnet
