// Trace: what components did, in order, for inspection or for comparing two runs.
#pragma once

#include <cstdint>

#include "kernel/event.hpp"
#include "kernel/time.hpp"

namespace apenet {

// One recorded action. The recording module defines `what` and the meaning of place, other, a and b by its
// own enum; `kind` identifies the module.
struct TraceRecord {
  Time time{};
  Time until{};  // end of what began at `time` if known, otherwise zero
  EventKind kind = EventKind::control;
  std::uint8_t rail = 0;  // EventKind::link: which of the nodes' networks
  std::uint16_t what = 0;
  std::uint32_t place = 0;  // node, link, process
  std::uint32_t other = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};

class TraceSink {
 public:
  virtual void record(const TraceRecord& record) = 0;

 protected:
  ~TraceSink() = default;
};

// A running 64-bit hash of all records, which depends on their order. Two runs with equal hashes did the same
// at the same times in the same order. Not cryptographic.
class TraceHash final : public TraceSink {
 public:
  void record(const TraceRecord& record) override {
    mix(static_cast<std::uint64_t>(record.time.ps()));
    mix(static_cast<std::uint64_t>(record.rail) << 56 | static_cast<std::uint64_t>(record.kind) << 48 |
        static_cast<std::uint64_t>(record.what) << 32 | record.place);
    mix(static_cast<std::uint64_t>(record.until.ps()));
    mix(record.other);
    mix(record.a);
    mix(record.b);
    ++count_;
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  // The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) over the running sum: every bit of every
  // earlier word reaches every bit of the state.
  void mix(std::uint64_t word) {
    std::uint64_t z = (state_ ^ word) + 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    state_ = z ^ (z >> 31);
  }

  std::uint64_t state_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace apenet
