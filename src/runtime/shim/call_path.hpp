// CallPath: what a thread has called lately, in one number.
#pragma once

#include <cstdint>

namespace apenet::shim {

// A hash of the last 64 call sites: with each call, the weight of those before halves. A loop over one or two
// calls counts once when it has ended, however often it ran: after a halo exchange in three directions the
// call path is the same as after one in four. Within the loop its passes count, up to a limit.
class CallPath {
 public:
  // key: of the site, the same in every run of the program; see ipc/compute_table.hpp.
  void add(std::uint64_t key) {
    if (key == last_but_one_) {
      if (repeats_ < most_repeats) ++repeats_;
    } else {
      hash_ = (hash_ << 1U) + key;
      repeats_ = 0;
    }
    last_but_one_ = last_;
    last_ = key;
  }
  [[nodiscard]] std::uint64_t hash() const { return hash_ + repeats_ * 0x9e3779b97f4a7c15U; }

 private:
  static constexpr std::uint64_t most_repeats = 64;

  std::uint64_t hash_ = 0;
  std::uint64_t repeats_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t last_but_one_ = 0;
};

}  // namespace apenet::shim
