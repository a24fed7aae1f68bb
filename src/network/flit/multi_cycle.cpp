// FlitRouterBank: stages that take several cycles. A router's stage works on one set of requests at a time
// and answers at the end of its last cycle; until then it accepts no others.
#include <algorithm>
#include <utility>

#include "network/flit/router_bank.hpp"

namespace apenet {

// Moves to route computation the headers that can begin it now; the others keep waiting.
void FlitRouterBank::begin_routing(FlitCycle cycle) {
  const FlitCycle done = cycle + fabric_.timing.routing_cycles - 1;
  FlitPlaceList waiting{allocating_.begin(), routed_};
  for (std::size_t i = routed_; i < allocating_.size(); ++i) {
    const FlitPlace place = allocating_[i];
    FlitBusyStages& work = state_.busy_stages[place >> channel_bits_];
    if (!work.routing.empty() && work.routing_done != done) {
      waiting.add(place);
      continue;
    }
    work.routing.push_back(place);
    work.routing_done = done;
  }
  allocating_ = waiting;
}

// Places it before the headers that have no route yet.
void FlitRouterBank::end_routing(FlitPlace place) {
  allocating_.add(place);
  std::swap(allocating_.begin()[routed_++], allocating_.end()[-1]);
}

// Removes the requests to stages that are still working.
void FlitRouterBank::drop_busy() {
  channel_askers_ = allocating_.partition(channel_askers_, [&](FlitPlace place) {
    return state_.busy_stages[place >> channel_bits_].channel_grants.empty();
  });
  switch_askers_ = switching_.partition(switch_askers_, [&](const FlitCrossing& crossing) {
    return state_.busy_stages[crossing.input() >> channel_bits_].crossings.empty();
  });
}

// Stores the grants of switch allocation until the stage ends.
void FlitRouterBank::keep_crossings(FlitCycle cycle) {
  for (std::size_t i = 0; i < crossing_count_; ++i) {
    const FlitCrossing& crossing = crossings_[i];
    accept(crossing);
    FlitBusyStages& work = state_.busy_stages[crossing.input() >> channel_bits_];
    work.crossings.push_back(crossing);
    work.crossings_done = cycle + fabric_.timing.switch_allocation_cycles - 1;
  }
}

// Applies the results of the stages that end in this cycle, in all routers of the block.
void FlitRouterBank::finish_stages(std::uint32_t block, FlitCycle cycle) {
  const std::uint32_t routers = 1U << (FlitFabric::block_bits - channel_bits_);
  const std::uint32_t end = std::min((block + 1) * routers, fabric_.router_count);
  for (std::uint32_t router = block * routers; router < end; ++router) {
    if (state_.busy_stages[router].is_busy()) finish_stages(state_.busy_stages[router], cycle);
  }
}

void FlitRouterBank::finish_stages(FlitBusyStages& work, FlitCycle cycle) {
  is_changed_ = true;
  if (work.routing_done == cycle) {
    for (const FlitPlace place : work.routing) end_routing(place);
    work.routing.clear();
  }
  if (work.channel_grants_done == cycle) {
    for (const FlitCrossing& grant : work.channel_grants) {
      if (fabric_.slot_flits != 0) take_slot(grant);
      hold(grant, switching_);
    }
    work.channel_grants.clear();
  }
  if (work.crossings_done == cycle) {
    traverse_all(work.crossings, cycle);
    work.crossings.clear();
  }
}

// Stores the grants of VC allocation until the stage ends; appends the refused headers to `lost`.
void FlitRouterBank::keep_channel_grants(FlitCycle cycle, FlitPlaceList& lost) {
  for (std::size_t i = 0; i < channel_askers_; ++i) {
    const FlitChannelRequest& request = channel_requests_[i];
    if (request.mask == 0) {
      lost.add(request.input);
      continue;
    }
    FlitBusyStages& work = state_.busy_stages[request.input >> channel_bits_];
    work.channel_grants.push_back({request.input, choose(request)});
    work.channel_grants_done = cycle + fabric_.timing.vc_allocation_cycles - 1;
  }
}

// Returns how many cycles a flit granted now is delayed by earlier ones: the switch moves one set of flits at
// a time, and the flits of one output leave one after the other.
FlitCycle FlitRouterBank::delay_crossing(FlitPlace output, FlitCycle cycle) {
  const FlitCycle length = fabric_.timing.switch_traversal_cycles;
  FlitCycle& done = state_.crossing_done[output >> channel_bits_];
  const FlitCycle began = done - length + 1;
  if (cycle >= began) done = std::max(cycle, done) + length;
  const std::uint32_t port = port_index(output);
  const FlitCycle interval = fabric_.flit_cycles[fabric_.port_table[port].wires.speed];
  const FlitCycle sent =
      state_.last_sent[port] < 0 ? done : std::max(done, state_.last_sent[port] + interval);
  state_.last_sent[port] = sent;
  return sent - (cycle + length);
}

}  // namespace apenet
