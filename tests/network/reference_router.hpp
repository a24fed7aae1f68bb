// ReferenceRouter: the router of docs/models/flit-engine.md written literally, one register at a time and
// without regard to speed. The engine's own router is tested against it.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "network/flit/router.hpp"
#include "network/flit/sockets.hpp"

namespace apenet::testing {

// Supports any delays.
class ReferenceRouter final : public FlitRouter {
 public:
  ReferenceRouter(const FlitRouterShape& shape, const FlitRouteSource& routes)
      : shape_(shape),
        routes_(routes),
        inputs_(channels()),
        outputs_(channels(), Output{shape.timing.buffer_flits}),
        grant_pointer_(channels(), 0),
        accept_pointer_(channels(), 0),
        switch_grant_(shape.ports, 0),
        switch_accept_(shape.ports, 0),
        next_channel_(shape.ports, 0),
        next_flit_(shape.ports, 0),
        to_send_(shape.ports),
        next_sent_(shape.ports, 0) {}

  void tick(FlitCycle cycle, const std::vector<FlitPortWires>& inputs,
            std::vector<FlitPortWires>& outputs) override {
    traverse(cycle, outputs);
    read(cycle, inputs);
    const FlitTiming& timing = shape_.timing;
    if (channel_grants_.is_idle()) {
      channel_grants_.begin(allocate_channels(), cycle + timing.vc_allocation_cycles - 1);
    }
    if (switch_grants_.is_idle()) {
      const FlitCycle granted = cycle + timing.switch_allocation_cycles - 1;
      switch_grants_.begin(allocate_switch(granted), granted);
    }
    if (routing_.is_idle()) routing_.begin(waiting_for_route(), cycle + timing.routing_cycles - 1);
    for (const auto& [input, output] : channel_grants_.end(cycle)) {
      inputs_[input].output = output;
      inputs_[input].stage = Stage::active;
      outputs_[output].is_taken = true;
    }
    for (const auto& [input, output_port] : switch_grants_.end(cycle)) {
      send(cycle, input, output_port, outputs);
    }
    for (const int i : routing_.end(cycle)) route(i);
  }

  [[nodiscard]] bool is_quiet() const override {
    if (!granted_.empty() || !crossing_.is_idle() || !writing_.empty() || !returning_.empty()) return false;
    for (const std::deque<FlitOnWire>& flits : to_send_) {
      if (!flits.empty()) return false;
    }
    for (const Input& input : inputs_) {
      if (!input.buffer.empty()) return false;
    }
    return true;
  }

 private:
  enum class Stage : std::uint8_t { idle, routing, allocating, active };
  struct Input {
    std::deque<Flit> buffer;
    Stage stage = Stage::idle;
    FlitRouteSource::Answer request;
    int output = -1;
  };
  struct Output {
    std::uint32_t credits = 0;
    bool is_taken = false;
  };
  using Grants = std::vector<std::pair<int, int>>;
  using Crossing = std::vector<std::pair<int, FlitOnWire>>;  // to output ports
  // A pipeline stage: holds one set at a time and delivers it at the end of its last cycle. Idle without a
  // set.
  template <typename Set>
  class Work {
   public:
    [[nodiscard]] bool is_idle() const { return set_.empty(); }
    void begin(Set set, FlitCycle done) {
      set_ = std::move(set);
      done_ = done;
    }
    [[nodiscard]] Set end(FlitCycle cycle) { return cycle == done_ ? std::exchange(set_, {}) : Set{}; }

   private:
    Set set_;
    FlitCycle done_ = -1;
  };

  [[nodiscard]] int channels() const { return static_cast<int>(shape_.ports * shape_.virtual_channels); }
  [[nodiscard]] int per_port() const { return static_cast<int>(shape_.virtual_channels); }
  [[nodiscard]] int ports() const { return static_cast<int>(shape_.ports); }

  void read(FlitCycle cycle, const std::vector<FlitPortWires>& wires) {
    for (int port = 0; port < ports(); ++port) {
      const FlitOnWire& flit = wires[port].flit;
      const CreditOnWire& credit = wires[port].credit;
      if (flit.is_valid) {
        writing_.push_back(
            {cycle + shape_.timing.buffer_write_cycles, port * per_port() + flit.virtual_channel, flit.flit});
      }
      if (credit.is_valid) {
        returning_.emplace_back(cycle + shape_.timing.credit_cycles,
                                port * per_port() + credit.virtual_channel);
      }
    }
    while (!writing_.empty() && writing_.front().due == cycle) {
      Input& input = inputs_[writing_.front().channel];
      input.buffer.push_back(writing_.front().flit);
      if (input.stage == Stage::idle) begin(writing_.front().channel);
      writing_.pop_front();
    }
    while (!returning_.empty() && returning_.front().first == cycle) {
      ++outputs_[returning_.front().second].credits;
      returning_.pop_front();
    }
  }

  // An idle switch takes all flits granted since it last began. An output sends the flits that it receives
  // one by one.
  void traverse(FlitCycle cycle, std::vector<FlitPortWires>& wires) {
    if (crossing_.is_idle()) {
      crossing_.begin(std::exchange(granted_, {}), cycle + shape_.timing.switch_traversal_cycles - 1);
    }
    for (const auto& [port, flit] : crossing_.end(cycle)) to_send_[port].push_back(flit);
    for (int port = 0; port < ports(); ++port) {
      if (to_send_[port].empty() || next_sent_[port] > cycle) continue;
      wires[port].flit = to_send_[port].front();
      to_send_[port].pop_front();
      next_sent_[port] = cycle + shape_.output_interval_cycles[port];
    }
  }

  [[nodiscard]] std::vector<int> waiting_for_route() const {
    std::vector<int> waiting;
    for (int i = 0; i < channels(); ++i) {
      if (inputs_[i].stage == Stage::routing) waiting.push_back(i);
    }
    return waiting;
  }

  void begin(int channel) {
    inputs_[channel].stage = Stage::routing;
    if (shape_.timing.routing_cycles == 0) route(channel);
  }

  void route(int channel) {
    Input& input = inputs_[channel];
    input.request = routes_.route(static_cast<std::uint32_t>(channel / per_port()),
                                  static_cast<std::uint32_t>(channel % per_port()), input.buffer.front());
    input.stage = Stage::allocating;
  }

  [[nodiscard]] bool asks(int channel, int output) const {
    const Input& input = inputs_[channel];
    if (input.stage != Stage::allocating || outputs_[output].is_taken) return false;
    if (output / per_port() != static_cast<int>(input.request.port)) return false;
    if ((input.request.virtual_channels >> (output % per_port()) & 1) == 0) return false;
    return !shape_.is_cut_through || outputs_[output].credits >= routes_.flits(input.buffer.front());
  }

  // iSLIP over all virtual channels.
  Grants allocate_channels() {
    std::vector<int> granted(channels(), -1);
    for (int output = 0; output < channels(); ++output) {
      for (int i = 0; i < channels() && granted[output] < 0; ++i) {
        const int input = (grant_pointer_[output] + i) % channels();
        if (asks(input, output)) granted[output] = input;
      }
    }
    Grants accepted;
    for (int input = 0; input < channels(); ++input) {
      for (int i = 0; i < channels(); ++i) {
        const int output = (accept_pointer_[input] + i) % channels();
        if (granted[output] != input) continue;
        accepted.emplace_back(input, output);
        grant_pointer_[output] = (input + 1) % channels();
        accept_pointer_[input] = (output + 1) % channels();
        break;
      }
    }
    return accepted;
  }

  // The virtual channel of the input port that requests the output port.
  [[nodiscard]] std::optional<int> asking(int input_port, int output_port, FlitCycle granted) const {
    if (next_flit_[output_port] > granted) return {};
    for (int i = 0; i < per_port(); ++i) {
      const int channel = input_port * per_port() + (next_channel_[input_port] + i) % per_port();
      const Input& input = inputs_[channel];
      if (input.stage == Stage::active && !input.buffer.empty() && input.output / per_port() == output_port &&
          outputs_[input.output].credits > 0) {
        return channel;
      }
    }
    return {};
  }

  // iSLIP over ports, for the cycle in which the stage delivers.
  Grants allocate_switch(FlitCycle cycle) {
    std::vector<int> granted(ports(), -1);
    for (int output = 0; output < ports(); ++output) {
      for (int i = 0; i < ports() && granted[output] < 0; ++i) {
        const int input = (switch_grant_[output] + i) % ports();
        if (asking(input, output, cycle)) granted[output] = input;
      }
    }
    Grants accepted;
    for (int input = 0; input < ports(); ++input) {
      for (int i = 0; i < ports(); ++i) {
        const int output = (switch_accept_[input] + i) % ports();
        if (granted[output] != input) continue;
        accepted.emplace_back(*asking(input, output, cycle), output);
        break;
      }
    }
    for (const auto& [channel, output] : accepted) {
      const int input = channel / per_port();
      switch_grant_[output] = (input + 1) % ports();
      switch_accept_[input] = (output + 1) % ports();
      next_channel_[input] = (channel % per_port() + 1) % per_port();
    }
    return accepted;
  }

  void send(FlitCycle cycle, int channel, int output_port, std::vector<FlitPortWires>& wires) {
    Input& input = inputs_[channel];
    const Flit flit = input.buffer.front();
    input.buffer.pop_front();
    --outputs_[input.output].credits;
    next_flit_[output_port] = cycle + shape_.output_interval_cycles[output_port];
    granted_.emplace_back(output_port,
                          FlitOnWire{true, static_cast<std::uint16_t>(input.output % per_port()), flit});
    wires[channel / per_port()].credit = {true, static_cast<std::uint16_t>(channel % per_port())};
    if (!flit.is_tail()) return;
    outputs_[input.output].is_taken = false;
    input.stage = Stage::idle;
    if (!input.buffer.empty()) begin(channel);
  }

  struct Writing {
    FlitCycle due = 0;
    int channel = 0;
    Flit flit;
  };

  FlitRouterShape shape_;
  const FlitRouteSource& routes_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<int> grant_pointer_;
  std::vector<int> accept_pointer_;
  std::vector<int> switch_grant_;
  std::vector<int> switch_accept_;
  std::vector<int> next_channel_;
  std::vector<FlitCycle> next_flit_;
  std::deque<Writing> writing_;
  std::deque<std::pair<FlitCycle, int>> returning_;
  Work<std::vector<int>> routing_;
  Work<Grants> channel_grants_;
  Work<Grants> switch_grants_;
  Crossing granted_;  // not yet taken by the switch
  Work<Crossing> crossing_;
  std::vector<std::deque<FlitOnWire>> to_send_;  // per output port
  std::vector<FlitCycle> next_sent_;             // per output port
};

}  // namespace apenet::testing
