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
template <std::size_t Words>
class FlitChannelAllocator {
 public:
  FlitChannelAllocator(std::uint32_t channels, std::uint32_t virtual_channels)
      : virtual_channels_(virtual_channels), requests_(channels) {}

  // mask: of virtual channels of the port, not empty.
  void request(std::uint32_t input, std::uint32_t port, std::uint64_t mask) {
    requests_[count_++] = {static_cast<std::uint16_t>(input), static_cast<std::uint16_t>(port), mask};
    const std::uint64_t bit = std::uint64_t{1} << port;
    contended_ |= ports_ & bit;
    ports_ |= bit;
  }

  // inputs, last_granted: of this router, by virtual channel. accept(input, output) for each match. Leaves no
  // request behind.
  template <typename Accept>
  void allocate(FlitInputChannel* inputs, std::uint16_t* last_granted, Accept accept) {
    for (; contended_ != 0; contended_ &= contended_ - 1) {
      grant_port(static_cast<std::uint32_t>(std::countr_zero(contended_)), last_granted);
    }
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Request& request = requests_[i];
      if (request.mask == 0) continue;
      FlitInputChannel& input = inputs[request.input];
      const std::uint32_t base = request.port * virtual_channels_;
      const std::uint32_t from = input.output + 1U - base;  // below the port's first, it is a large number
      const std::uint32_t output = base + first_cyclic(request.mask, from < virtual_channels_ ? from : 0);
      input.output = static_cast<std::uint16_t>(output);
      input.output_port = request.port;
      last_granted[output] = request.input;
      accept(request.input, output);
    }
    count_ = 0;
    ports_ = 0;
  }

 private:
  struct Request {
    std::uint16_t input = 0;
    std::uint16_t port = 0;
    std::uint64_t mask = 0;  // wanted; then, granted. Where nobody else asks, that is all
  };

  // Several inputs ask for channels of this port.
  void grant_port(std::uint32_t port, const std::uint16_t* last_granted) {
    std::uint64_t wanted = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      Request& request = requests_[i];
      if (request.port != port) continue;
      number_of_[request.input] = static_cast<std::uint16_t>(i);
      wanted |= request.mask;
      for (std::uint64_t rest = request.mask; rest != 0; rest &= rest - 1) {
        askers_[static_cast<std::size_t>(std::countr_zero(rest))].set(request.input);
      }
      request.mask = 0;
    }
    for (; wanted != 0; wanted &= wanted - 1) {
      const auto channel = static_cast<std::uint32_t>(std::countr_zero(wanted));
      const std::uint32_t winner =
          askers_[channel].first_cyclic(last_granted[port * virtual_channels_ + channel] + 1U);
      askers_[channel] = {};
      requests_[number_of_[winner]].mask |= std::uint64_t{1} << channel;
    }
  }

  std::uint32_t virtual_channels_;
  std::uint32_t count_ = 0;
  std::uint64_t ports_ = 0;      // that somebody asks for
  std::uint64_t contended_ = 0;  // that more than one asks for
  std::vector<Request> requests_;
  std::array<FlitBits<Words>, 64> askers_{};           // per virtual channel of the port at hand: inputs
  std::array<std::uint16_t, 64 * Words> number_of_{};  // per input of it: in requests_
};

// Inputs and outputs are ports. The virtual channels of an input port that want the same output take turns in
// asking for it.
class FlitSwitchAllocator {
 public:
  FlitSwitchAllocator(std::uint32_t ports, std::uint32_t virtual_channels)
      : ports_(ports), virtual_channels_(virtual_channels), asking_(std::size_t{ports} * ports) {}

  // In ascending order of inputs. served: the virtual channel of the input served last.
  void request(std::uint32_t input, std::uint32_t output, std::uint32_t channel, std::uint32_t served) {
    const std::uint64_t input_bit = std::uint64_t{1} << input;
    const std::uint64_t output_bit = std::uint64_t{1} << output;
    contended_ |= (inputs_ & input_bit) | (outputs_ & output_bit);
    std::uint16_t& asking = asking_[input * ports_ + output];
    if ((requests_[output] & input_bit) != 0) {
      if (turn(channel, served) < turn(asking, served)) asking = static_cast<std::uint16_t>(channel);
      return;
    }
    asking = static_cast<std::uint16_t>(channel);
    requests_[output] |= input_bit;
    inputs_ |= input_bit;
    outputs_ |= output_bit;
    output_of_[input] = static_cast<std::uint16_t>(output);
  }

  // arbiters: of this router, by port. accept(input, output, virtual channel of the input) for each match,
  // in ascending order of inputs. Leaves no request behind.
  template <typename Accept>
  void allocate(FlitPortArbiters* arbiters, Accept accept) {
    if (contended_ != 0) grant(arbiters);
    for (std::uint64_t rest = inputs_; rest != 0; rest &= rest - 1) {
      const auto input = static_cast<std::uint32_t>(std::countr_zero(rest));
      const std::uint32_t output = output_of_[input];
      requests_[output] = 0;
      const std::uint16_t channel = asking_[input * ports_ + output];
      arbiters[output].granted_input = static_cast<std::uint16_t>(input);
      arbiters[input].accepted_output = static_cast<std::uint16_t>(output);
      arbiters[input].served_channel = channel;
      accept(input, output, channel);
    }
    inputs_ = 0;
    outputs_ = 0;
    contended_ = 0;
  }

 private:
  // Place in the round robin from behind the one served last.
  [[nodiscard]] std::uint32_t turn(std::uint32_t channel, std::uint32_t served) const {
    return channel > served ? channel - served : channel + virtual_channels_ - served;
  }

  void grant(const FlitPortArbiters* arbiters) {
    inputs_ = 0;
    for (; outputs_ != 0; outputs_ &= outputs_ - 1) {
      const auto output = static_cast<std::uint32_t>(std::countr_zero(outputs_));
      const std::uint32_t input = first_cyclic(requests_[output], arbiters[output].granted_input + 1U);
      requests_[output] = 0;
      grants_[input] |= std::uint64_t{1} << output;
      inputs_ |= std::uint64_t{1} << input;
    }
    for (std::uint64_t rest = inputs_; rest != 0; rest &= rest - 1) {
      const auto input = static_cast<std::uint32_t>(std::countr_zero(rest));
      output_of_[input] =
          static_cast<std::uint16_t>(first_cyclic(grants_[input], arbiters[input].accepted_output + 1U));
      grants_[input] = 0;
    }
  }

  std::uint32_t ports_;
  std::uint32_t virtual_channels_;
  std::uint64_t contended_ = 0;                // not 0: somebody asks for two, or two for the same
  std::uint64_t inputs_ = 0;                   // that ask; then those that were given what they asked for
  std::uint64_t outputs_ = 0;                  // that have requests
  std::array<std::uint64_t, 64> requests_{};   // per output: input ports
  std::array<std::uint64_t, 64> grants_{};     // per input: output ports
  std::array<std::uint16_t, 64> output_of_{};  // per input
  std::vector<std::uint16_t> asking_;          // virtual channel, per input and output port
};

}  // namespace apenet
