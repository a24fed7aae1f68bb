// WaitingQueues: which queues wait for each output, visited round robin.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/packet/records.hpp"

namespace apenet::packet {

// One bit for each queue that can ask for an output. The first 64 of them are in the output's own record,
// the others here.
class WaitingQueues {
 public:
  WaitingQueues(std::size_t outputs, std::uint32_t queues_per_output)
      : words_((queues_per_output + 63) / 64), state_{std::vector<std::uint64_t>(outputs * (words_ - 1))} {}

  struct State {
    std::vector<std::uint64_t> more;
  };

  void start(Output& output, std::uint32_t output_index, std::uint32_t queue_index) {
    const std::uint32_t number = queue_index - output.spec.first_queue;
    word(output, output_index, number / 64) |= std::uint64_t{1} << number % 64;
    ++output.state.waiting;
  }
  void stop(Output& output, std::uint32_t output_index, std::uint32_t queue_index) {
    const std::uint32_t number = queue_index - output.spec.first_queue;
    word(output, output_index, number / 64) &= ~(std::uint64_t{1} << number % 64);
    --output.state.waiting;
  }

  // Calls visitor(queue_index) for the waiting queues, beginning behind the one granted last, until it
  // returns true. Requires a waiting queue.
  template <typename Visitor>
  void visit(Output& output, std::uint32_t output_index, Visitor visitor) {
    // Usually one queue waits: a branch on whether it lies before or behind the one granted last would be
    // mispredicted.
    if (output.state.waiting == 1 && output.state.waiting_mask != 0) {
      visitor(output.spec.first_queue +
              static_cast<std::uint32_t>(std::countr_zero(output.state.waiting_mask)));
      return;
    }
    const std::uint32_t start =
        output.state.last_granted + 1U == 64 * words_ ? 0 : output.state.last_granted + 1U;
    const std::uint64_t from_start = ~std::uint64_t{0} << start % 64;
    std::uint32_t index = start / 64;
    std::uint64_t bits = word(output, output_index, index) & from_start;
    for (std::uint32_t i = 0;; ++i) {
      for (; bits != 0; bits &= bits - 1) {
        if (visitor(output.spec.first_queue + index * 64 +
                    static_cast<std::uint32_t>(std::countr_zero(bits))))
          return;
      }
      if (i == words_) return;
      if (++index == words_) index = 0;
      bits = word(output, output_index, index);
      if (i + 1 == words_) bits &= ~from_start;
    }
  }

  // The first in the round. Requires a waiting queue.
  [[nodiscard]] std::uint32_t next(Output& output, std::uint32_t output_index) {
    std::uint32_t found = 0;
    visit(output, output_index, [&found](std::uint32_t queue_index) {
      found = queue_index;
      return true;
    });
    return found;
  }

  // Nobody waits any more; the outputs' own words are the caller's to clear.
  void clear() { std::fill(state_.more.begin(), state_.more.end(), 0); }

 private:
  [[nodiscard]] std::uint64_t& word(Output& output, std::uint32_t output_index, std::uint32_t index) {
    return index == 0 ? output.state.waiting_mask
                      : state_.more[std::size_t{output_index} * (words_ - 1) + index - 1];
  }

  const std::uint32_t words_;  // per output
  State state_;
};

}  // namespace apenet::packet
