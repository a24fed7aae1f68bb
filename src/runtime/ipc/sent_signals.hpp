// Signals that ranks send each other: in virtual time, as a timer of the receiver that is due then.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace apenet::ipc {

// Further ones that the receiver has not taken are lost, as the host loses one that is pending already.
inline constexpr std::uint32_t signal_ring = 64;
inline constexpr int most_signal = 64;

struct SentSignal {
  std::int64_t time_ps = 0;  // by the receiver's clock: it takes the signal no earlier
  std::int32_t number = 0;
  std::int32_t code = 0;  // siginfo_t::si_code, and so on
  std::int32_t process = 0;
  std::uint32_t user = 0;
  std::uint64_t value = 0;
};

// Counters wrap around. The simulator writes while the process waits.
struct SignalRing {
  std::atomic<std::uint32_t> head{0};  // simulator
  std::atomic<std::uint32_t> tail{0};  // process
  std::array<SentSignal, signal_ring> signals{};

  [[nodiscard]] const SentSignal* front() const {
    const std::uint32_t at = tail.load(std::memory_order_relaxed);
    return at == head.load(std::memory_order_relaxed) ? nullptr : &signals[at % signal_ring];
  }
  void pop() { tail.store(tail.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

}  // namespace apenet::ipc
