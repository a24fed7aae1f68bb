// PacketLoss: which packets an interface loses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernel/random.hpp"

namespace apenet::ip {

// A sequence of draws. Interfaces with other numbers, and other seeds, lose other packets.
class PacketLoss {
 public:
  PacketLoss(double probability, std::uint64_t seed, std::uint32_t interface)
      : threshold_(static_cast<std::uint64_t>(std::min(std::ldexp(probability, 64), most))),
        draws_(seed, stream + interface) {}

  // Whether the next packet is lost.
  [[nodiscard]] bool next() { return threshold_ > 0 && draws_.next() < threshold_; }

 private:
  static constexpr double most = 18446744073709549568.0;  // the largest double below 2^64
  static constexpr std::uint64_t stream = 0x6c6f7373ULL
                                          << 32U;  // "loss": distinct from other draws with the seed
  std::uint64_t threshold_;
  SplitMix64 draws_;
};

}  // namespace apenet::ip
