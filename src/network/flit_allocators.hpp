// The separable allocators of the flit engine's routers: iSLIP, one iteration.
//
// iSLIP (McKeown, IEEE/ACM Trans. Networking 7, 1999): every output grants one of the inputs that request it,
// round robin from behind the one it served last; every input accepts one of its grants in the same way; the
// pointers of both move only when the grant was accepted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/flit_bits.hpp"
#include "network/flit_pipeline.hpp"

namespace apenet {

// Inputs and outputs are virtual channels. An input asks for a set of free ones of a single output port.
class FlitChannelAllocator {
 public:
  FlitChannelAllocator(std::uint32_t channels, std::uint32_t virtual_channels)
      : channels_(channels), virtual_channels_(virtual_channels), requests_(channels) {}

  void clear() {
    count_ = 0;
    ports_ = 0;
    contended_ = 0;
  }

  // mask: of virtual channels of the port, not empty.
  void request(std::uint32_t input, std::uint32_t port, std::uint64_t mask) {
    requests_[count_++] = {static_cast<std::uint16_t>(input), static_cast<std::uint8_t>(port), mask, mask};
    const std::uint64_t bit = std::uint64_t{1} << port;
    contended_ |= ports_ & bit;
    ports_ |= bit;
  }

  // inputs, last_granted: of this router, by virtual channel. accept(input, output) for each match.
  template <typename Accept>
  void allocate(FlitInputChannel* inputs, std::uint16_t* last_granted, Accept accept) {
    if (contended_ != 0) grant_contended(last_granted);
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Request& request = requests_[i];
      if (request.granted == 0) continue;
      const std::uint32_t base = request.port * virtual_channels_;
      const std::uint32_t pointer = behind(inputs[request.input].output);
      const std::uint32_t from = pointer > base && pointer < base + virtual_channels_ ? pointer - base : 0;
      const std::uint32_t output = base + first_cyclic(request.granted, from);
      inputs[request.input].output = static_cast<std::uint16_t>(output);
      last_granted[output] = request.input;
      accept(request.input, output);
    }
  }

 private:
  struct Request {
    std::uint16_t input = 0;
    std::uint8_t port = 0;
    std::uint64_t wanted = 0;
    std::uint64_t granted = 0;  // by those outputs; where nobody else asks, all
  };

  [[nodiscard]] std::uint32_t behind(std::uint32_t channel) const {
    return channel + 1 == channels_ ? 0 : channel + 1;
  }

  void grant_contended(const std::uint16_t* last_granted) {
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if ((contended_ >> requests_[i].port & 1) == 0) continue;
      requests_[i].granted = 0;
      all |= std::uint64_t{1} << requests_[i].port;
    }
    for (; all != 0; all &= all - 1)
      grant_port(static_cast<std::uint32_t>(std::countr_zero(all)), last_granted);
  }

  void grant_port(std::uint32_t port, const std::uint16_t* last_granted) {
    std::uint64_t wanted = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (requests_[i].port == port) wanted |= requests_[i].wanted;
    }
    for (; wanted != 0; wanted &= wanted - 1) {
      const auto channel = static_cast<std::uint32_t>(std::countr_zero(wanted));
      const std::uint32_t pointer = behind(last_granted[port * virtual_channels_ + channel]);
      std::uint32_t nearest = channels_;
      std::uint32_t winner = 0;
      for (std::uint32_t i = 0; i < count_; ++i) {
        const Request& request = requests_[i];
        if (request.port != port || (request.wanted >> channel & 1) == 0) continue;
        const std::uint32_t input = request.input;
        const std::uint32_t distance = input >= pointer ? input - pointer : input + channels_ - pointer;
        if (distance >= nearest) continue;
        nearest = distance;
        winner = i;
      }
      requests_[winner].granted |= std::uint64_t{1} << channel;
    }
  }

  std::uint32_t channels_;
  std::uint32_t virtual_channels_;
  std::uint32_t count_ = 0;
  std::uint64_t ports_ = 0;      // that somebody asks for
  std::uint64_t contended_ = 0;  // that more than one asks for
  std::vector<Request> requests_;
};

// Inputs and outputs are ports. The virtual channels of an input port that want the same output take turns in
// asking for it.
class FlitSwitchAllocator {
 public:
  FlitSwitchAllocator(std::uint32_t ports, std::uint32_t virtual_channels)
      : ports_(ports), virtual_channels_(virtual_channels), asking_(std::size_t{ports} * ports) {}

  // Call for the virtual channels of an input port in the order of their turns: the first one asks.
  void request(std::uint32_t input, std::uint32_t output, std::uint32_t channel) {
    const std::uint64_t bit = std::uint64_t{1} << input;
    std::uint64_t& requests = requests_[output];
    if ((requests & bit) != 0) return;
    requests |= bit;
    outputs_ |= std::uint64_t{1} << output;
    asking_[input * ports_ + output] = static_cast<std::uint8_t>(channel);
  }

  // arbiters: of this router, by port. accept(input, output, virtual channel of the input) for each match.
  // Leaves no request behind.
  template <typename Accept>
  void allocate(FlitPortArbiters* arbiters, Accept accept) {
    std::uint64_t inputs = 0;
    for (; outputs_ != 0; outputs_ &= outputs_ - 1) {
      const auto output = static_cast<std::uint32_t>(std::countr_zero(outputs_));
      const std::uint32_t input = first_cyclic(requests_[output], arbiters[output].granted_input + 1U);
      requests_[output] = 0;
      grants_[input] |= std::uint64_t{1} << output;
      inputs |= std::uint64_t{1} << input;
    }
    for (; inputs != 0; inputs &= inputs - 1) {
      const auto input = static_cast<std::uint32_t>(std::countr_zero(inputs));
      const std::uint32_t output = first_cyclic(grants_[input], arbiters[input].accepted_output + 1U);
      grants_[input] = 0;
      const std::uint8_t channel = asking_[input * ports_ + output];
      arbiters[output].granted_input = static_cast<std::uint8_t>(input);
      arbiters[input].accepted_output = static_cast<std::uint8_t>(output);
      arbiters[input].served_channel = channel;
      accept(input, output, channel);
    }
  }

 private:
  std::uint32_t ports_;
  std::uint32_t virtual_channels_;
  std::uint64_t outputs_ = 0;                 // that have requests
  std::array<std::uint64_t, 64> requests_{};  // per output: input ports
  std::array<std::uint64_t, 64> grants_{};    // per input: output ports
  std::vector<std::uint8_t> asking_;          // virtual channel, per input and output port
};

}  // namespace apenet
