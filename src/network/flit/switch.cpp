// FlitRouterBank: switch allocation and switch traversal.
#include "network/flit/router_bank.hpp"

namespace apenet {

// Writes the granted crossings to crossings_. Returns the refused requests, which it keeps at the beginning
// of switching_.
FlitCrossingList FlitRouterBank::allocate_switch() {
  const std::uint32_t virtual_channel_bits = virtual_channel_bits_;
  FlitCrossing* const requests = switching_.begin();
  const std::size_t request_count = switch_askers_;
  std::uint32_t* const contended_inputs = contended_inputs_.data();
  std::uint32_t* const contended_outputs = contended_.data();
  FlitChains<2>::List asked = ports_at_switch_.begin_list();
  std::size_t contended_input_count = 0;
  std::size_t contended_output_count = 0;
  for (std::uint32_t i = 0; i < request_count; ++i) {
    const FlitCrossing request = requests[i];
    const auto [is_input_contended, is_output_contended] =
        asked.add(i, {request.input() >> virtual_channel_bits, request.output() >> virtual_channel_bits});
    contended_inputs[contended_input_count] = i;
    contended_input_count += is_input_contended ? 1 : 0;
    contended_outputs[contended_output_count] = i;
    contended_output_count += is_output_contended ? 1 : 0;
  }
  ports_at_switch_.end_list(request_count);
  const FlitRouterPort* const ports = fabric_.port_table.data();
  if (fabric_.is_by_age) [[unlikely]] {
    settle_by_age(contended_output_count, contended_input_count);
  } else {
    for (std::size_t i = 0; i < contended_output_count; ++i) {
      switch_arbiter_.grant(requests, ports_at_switch_, contended_outputs[i], ports);
    }
    for (std::size_t i = 0; i < contended_input_count; ++i) {
      switch_arbiter_.accept(requests, ports_at_switch_, contended_inputs[i], ports);
    }
  }
  FlitCrossing* const crossings = crossings_.data();
  std::size_t lost_count = 0;  // partitioned without a branch, which would be unpredictable
  for (std::size_t i = 0; i < request_count; ++i) {
    const FlitCrossing request = requests[i];
    requests[lost_count] = request.as_asked();
    crossings[i - lost_count] = request;
    lost_count += request.lost_count();
  }
  crossing_count_ = request_count - lost_count;
  return {requests, lost_count};
}

// The contended requests of the oldest packets win.
[[gnu::noinline]] void FlitRouterBank::settle_by_age(std::size_t outputs, std::size_t inputs) {
  const auto turn = [this](const FlitCrossing& request) {
    return fabric_.turn_by_age(state_.flits[request.input()].flit.packet());
  };
  for (std::size_t i = 0; i < outputs; ++i) {
    switch_arbiter_.settle(switching_.begin(), ports_at_switch_, FlitSwitchArbiter::by_output, contended_[i],
                           turn);
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    switch_arbiter_.settle(switching_.begin(), ports_at_switch_, FlitSwitchArbiter::by_input,
                           contended_inputs_[i], turn);
  }
}

// Moves a flit from its buffer to the wire: it takes a credit of the next buffer and returns its own. Its
// input is added to `switching` if the next flit can request the switch.
template <bool is_plain>
[[gnu::always_inline]] inline void FlitRouterBank::traverse(FlitCrossing crossing, FlitCycle cycle,
                                                            std::size_t& followed,
                                                            FlitCrossingList& switching) {
  const FlitPlace place = crossing.input();
  FlitInputChannel& input = state_.inputs[place];
  const Flit flit = state_.flits[place].flit;
  const bool is_followed = --input.count != 0;
  FlitOutputChannel& output = state_.outputs[crossing.output()];
  --output.credits;

  FlitRouterPort& out = fabric_.port_table[port_index(crossing.output())];
  const FlitRouterPort& in = fabric_.port_table[port_index(place)];
  fabric_.count(out.use, flit);
  const FlitArrival arrival{out.across + crossing.output(), flit};
  if constexpr (is_plain) {
    fabric_.flits_on_wires.push(out.wires.flit_wire, arrival);
  } else {
    fabric_.send(port_index(crossing.output()), note_crossing(crossing, flit, cycle), arrival);
  }
  fabric_.credits_on_wires.push(in.wires.credit_wire, {in.across + place});

  if (flit.is_tail()) {
    state_.free[crossing.output() / 64] |= bit(crossing.output());
  } else {
    switching.add_if(is_followed && output.credits != 0, crossing);
  }
  followed_[followed] = place;
  followed += is_followed ? 1 : 0;
}

// Moves the second flit to the front of the buffers in followed_. The list avoids an unpredictable branch in
// traverse. An empty ring restarts at its first entry, so that few rows of the array are in use.
[[gnu::always_inline]] inline void FlitRouterBank::bring_next(std::size_t followed) {
  for (std::size_t i = 0; i < followed; ++i) {
    const FlitPlace place = followed_[i];
    FlitBuffered& front = state_.flits[place];
    const bool was_tail = front.flit.is_tail();
    const FlitBuffered& second = state_.flits[(1 + front.second) * row_size_ + place];
    const std::uint32_t third = state_.inputs[place].count == 1 ? 0 : (front.second + 1U) & ring_mask_;
    front = {second.flit, second.request, static_cast<std::uint16_t>(third)};
    if (was_tail) allocating_.add(place);
  }
}

// is_plain: note_crossing is not needed.
template <bool is_plain>
void FlitRouterBank::cross_switch(FlitCycle cycle, FlitCrossingList kept) {
  const FlitCrossing* const crossings = crossings_.data();
  const std::size_t count = crossing_count_;
  std::size_t followed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const FlitCrossing crossing = crossings[i];
    accept(crossing);
    traverse<is_plain>(crossing, cycle, followed, kept);
  }
  switching_.replace(switch_askers_, kept);
  bring_next(followed);
}

// The rare parts of a crossing: traces, adaptive routes, slow links. Returns the cycles of delay of its flit.
[[gnu::noinline]] FlitCycle FlitRouterBank::note_crossing(const FlitCrossing& crossing, Flit flit,
                                                          FlitCycle cycle) {
  const std::uint32_t port = port_index(crossing.output());
  const FlitPort& wires = fabric_.port_table[port].wires;
  if (flit.is_head()) {
    if (is_traced_) fabric_.trace_head(port, flit.packet());
    if (routes_.is_adaptive(state_.flits[crossing.input()].request))
      FlitFabric::note_port(wires, fabric_.state.routes[flit.packet()]);
  }
  if (fabric_.slot_flits != 0 && flit.is_tail()) return_slot(crossing.input(), flit.packet());
  if (has_intervals_) state_.output_free[port] = cycle + fabric_.flit_cycles[wires.speed];
  return is_multi_cycle_ ? delay_crossing(crossing.output(), cycle) : 0;
}

template void FlitRouterBank::cross_switch<true>(FlitCycle, FlitCrossingList);
template void FlitRouterBank::cross_switch<false>(FlitCycle, FlitCrossingList);

// For the crossings that a multi-cycle stage has kept; accept() has moved their pointers already.
void FlitRouterBank::traverse_all(const std::vector<FlitCrossing>& crossings, FlitCycle cycle) {
  std::size_t followed = 0;
  for (const FlitCrossing& crossing : crossings) traverse<false>(crossing, cycle, followed, switching_);
  bring_next(followed);
}

}  // namespace apenet
