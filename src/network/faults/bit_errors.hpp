// BitErrors: draws which transmissions over a link are corrupted.
#pragma once

#include <cstdint>
#include <vector>

namespace apenet {

// Returns the probability that at least one bit of a packet is wrong, 1 - (1 - rate)^(8 * bytes). It uses
// only correctly rounded operations, so that every host computes the same number.
[[nodiscard]] double corruption_probability(double bit_error_rate, std::uint32_t bytes);

// The limit for the mean number of transmissions per packet. Higher bit error rates are refused, because such
// a link is as good as dead.
inline constexpr double max_mean_transmissions = 1000;

// A draw is a Philox function of the seed, the link and the number of the transmission on that link. It
// depends on nothing that happens on other links.
class BitErrors {
 public:
  struct State {
    std::vector<std::uint64_t> transmissions;  // per link
  };
  struct Counters {
    std::uint64_t corrupted = 0;  // corrupted transmissions
    std::uint64_t retransmitted_bytes = 0;
  };

  BitErrors(std::uint64_t seed, std::size_t link_count)
      : seed_(seed), state_{std::vector<std::uint64_t>(link_count)}, links_(link_count) {}

  // Returns how many transmissions of the link's next packet are corrupted before one passes.
  [[nodiscard]] std::uint32_t draw_failures(std::uint32_t link, double bit_error_rate, std::uint32_t bytes);
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] const Counters& link(std::uint32_t link) const { return links_[link]; }
  // Restarts all counts, and with them the draws.
  void begin() {
    state_.transmissions.assign(links_.size(), 0);
    links_.assign(links_.size(), {});
  }

 private:
  const std::uint64_t seed_;
  State state_;
  std::vector<Counters> links_;
};

}  // namespace apenet
