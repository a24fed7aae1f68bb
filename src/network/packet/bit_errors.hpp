// BitErrors: which transmissions over which link are corrupted.
#pragma once

#include <cstdint>
#include <vector>

namespace apenet {

// Probability that at least one bit of a packet is wrong, 1 - (1 - rate)^(8 bytes). Exactly rounded
// operations alone, so that it is the same number on every host.
[[nodiscard]] double corruption_probability(double bit_error_rate, std::uint32_t bytes);

// How often a packet is sent until it has passed, on average, at most: beyond that a link is as good as dead,
// and such a rate is refused.
inline constexpr double max_mean_transmissions = 1000;

// Draws by Philox from the seed, the link and the number of the transmission on that link: what one link
// draws depends on nothing that happens elsewhere.
class BitErrors {
 public:
  struct Link {
    std::uint64_t transmissions = 0;
    std::uint64_t corrupted = 0;  // of these
    std::uint64_t retransmitted_bytes = 0;
  };

  BitErrors(std::uint64_t seed, std::size_t link_count) : seed_(seed), links_(link_count) {}

  // The next packet on the link: how many transmissions of it are corrupted before the one that passes.
  [[nodiscard]] std::uint32_t draw_failures(std::uint32_t link, double bit_error_rate, std::uint32_t bytes);
  [[nodiscard]] const Link& link(std::uint32_t link) const { return links_[link]; }
  // Counts from zero again.
  void begin() { links_.assign(links_.size(), {}); }

 private:
  std::uint64_t seed_;
  std::vector<Link> links_;
};

}  // namespace apenet
