// FlitRouterBank: VC allocation.
#include <algorithm>
#include <utility>

#include "network/flit/router_bank.hpp"

namespace apenet {

void FlitRouterBank::allocate_channels(FlitCycle cycle) {
  if (state_.has_adaptive) {
    for (std::size_t i = 0; i < channel_askers_; ++i) {
      FlitRequest& request = state_.flits[allocating_[i]].request;
      if (routes_.is_adaptive(request)) request = choose_output(allocating_[i]);
    }
  }
  list_channel_requests();
  const std::size_t count = channel_askers_;
  FlitPlaceList lost{allocating_.begin(), 0};
  if (is_multi_cycle_) {
    keep_channel_grants(cycle, lost);
  } else {
    // Two loops, because a grant takes only some ten instructions.
    fabric_.slot_flits == 0 ? hold_all<false>(lost) : hold_all<true>(lost);
  }
  const std::size_t granted = count - lost.size();
  is_changed_ |= granted != 0;
  allocating_.replace(count, lost);
  routed_ = is_multi_cycle_ ? routed_ - granted : allocating_.size();
}

// Lists the inputs that were granted nothing.
template <bool has_slots>
[[gnu::always_inline]] inline void FlitRouterBank::hold_all(FlitPlaceList& lost) {
  FlitCrossingList switching = switching_;
  const FlitChannelRequest* const end = channel_requests_.data() + channel_askers_;
  for (const FlitChannelRequest* request = channel_requests_.data(); request != end; ++request) {
    if (request->mask == 0) {
      lost.add(request->input);
      continue;
    }
    const FlitCrossing grant{request->input, choose(*request)};
    if constexpr (has_slots) take_slot(grant);
    hold(grant, switching);
  }
  switching_ = switching;
}

// Lists the free virtual channels that each header requests, then reduces contended requests to what was
// granted. Members are copied to local variables: the compiler must assume that any store changes a member.
[[gnu::always_inline]] inline void FlitRouterBank::list_channel_requests() {
  const std::uint32_t channel_mask = channel_mask_;
  const FlitPlace* const places = allocating_.begin();
  const std::size_t place_count = channel_askers_;
  const std::uint64_t* const free = state_.free.data();
  const FlitRouteUnit::Wanted* const wanted = routes_.wanted();
  const FlitBuffered* const flits = state_.flits.data();
  FlitChannelRequest* const requests = channel_requests_.data();
  std::uint32_t* const contended = contended_.data();
  FlitChains<1>::List asked = asked_channels_.begin_list();
  std::size_t contended_count = 0;
  for (std::uint32_t i = 0; i < place_count; ++i) {
    const FlitPlace place = places[i];
    const FlitRouteUnit::Wanted& want = wanted[flits[place].request.index()];
    const FlitPlace router = place & ~channel_mask;
    const FlitPlace port = router | want.first_channel;
    requests[i] = {place, port, free[port / 64] >> port % 64 & want.mask};
    contended[contended_count] = i;
    contended_count += static_cast<std::size_t>(asked.add(i, {router | want.first_wanted})[0]);
  }
  if (fabric_.is_cut_through) drop_small(requests, place_count);
  asked_channels_.end_list(place_count);
  for (std::size_t i = 0; i < contended_count; ++i) {
    const FlitPlace place = requests[contended[i]].input;
    const FlitRouteUnit::Wanted& want = wanted[flits[place].request.index()];
    if (asked_channels_.ends_chain(0, contended[i], (place & ~channel_mask) | want.first_wanted)) {
      if (fabric_.is_by_age) [[unlikely]] {
        grant_oldest_first(requests, contended[i]);
        continue;
      }
      channel_arbiter_.grant(requests, asked_channels_, contended[i], want.mask,
                             &state_.outputs[requests[contended[i]].port]);
    }
  }
}

// Arbitration by age: each request of the chain that ends with `last`, the oldest packet's first, is granted
// one channel that no older one has taken.
[[gnu::noinline]] void FlitRouterBank::grant_oldest_first(FlitChannelRequest* requests, std::uint32_t last) {
  by_age_.clear();
  asked_channels_.for_each(0, last, [this](std::uint32_t index) { by_age_.push_back(index); });
  const auto turn = [&](std::uint32_t index) {
    return fabric_.turn_by_age(state_.flits[requests[index].input].flit.packet());
  };
  std::sort(by_age_.begin(), by_age_.end(), [&](std::uint32_t one, std::uint32_t other) {
    return std::pair(turn(one), one) < std::pair(turn(other), other);
  });
  std::uint64_t taken = 0;
  for (const std::uint32_t index : by_age_) {
    FlitChannelRequest& request = requests[index];
    request.mask &= ~taken;
    if (request.mask == 0) continue;
    request.mask = std::uint64_t{1} << preferred(request);
    taken |= request.mask;
  }
}

// In a ring with a bubble a packet takes a slot, whose credits beyond its own flits go back with its tail.
[[gnu::noinline]] void FlitRouterBank::take_slot(const FlitCrossing& grant) {
  if (!fabric_.is_in_ring(grant.output())) return;
  const std::uint32_t flits = fabric_.state.routes[state_.flits[grant.input()].flit.packet()].flits;
  FlitOutputChannel& output = state_.outputs[grant.output()];
  output.credits = static_cast<std::uint16_t>(output.credits - (fabric_.slot_flits - flits));
}

[[gnu::noinline]] void FlitRouterBank::return_slot(FlitPlace input, std::uint32_t packet) {
  if (!fabric_.is_in_ring(input)) return;
  const FlitRouterPort& port = fabric_.port_table[port_index(input)];
  for (std::uint32_t flits = fabric_.state.routes[packet].flits; flits < fabric_.slot_flits; ++flits)
    fabric_.credits_on_wires.push(port.wires.credit_wire, {port.across + input});
}

// Virtual cut-through: returns the channels with room for the whole packet.
[[gnu::noinline]] std::uint64_t FlitRouterBank::with_room(FlitPlace input, FlitPlace port,
                                                          std::uint64_t mask) const {
  const std::uint32_t flits = fabric_.state.routes[state_.flits[input].flit.packet()].flits;
  std::uint64_t result = 0;
  for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    const std::uint32_t virtual_channel = lowest_bit(rest);
    if (state_.outputs[port + virtual_channel].credits >= flits)
      result |= std::uint64_t{1} << virtual_channel;
  }
  return result;
}

// The same with bubbles. In a ring with a bubble a packet needs a slot if it goes on along it, two if it
// enters it.
[[gnu::noinline]] std::uint64_t FlitRouterBank::with_slots(FlitPlace input, FlitPlace port,
                                                           std::uint64_t mask) const {
  std::uint64_t result = 0;
  for (std::uint64_t rest = with_room(input, port, mask); rest != 0; rest &= rest - 1) {
    const std::uint32_t virtual_channel = lowest_bit(rest);
    const bool goes_on =
        port_index(input) == (port_index(port) ^ 1U) && fabric_.virtual_channel_of(input) == virtual_channel;
    const std::uint32_t needed =
        fabric_.is_in_ring(port + virtual_channel) ? (goes_on ? 1 : 2) * fabric_.slot_flits : 0;
    if (state_.outputs[port + virtual_channel].credits >= needed)
      result |= std::uint64_t{1} << virtual_channel;
  }
  return result;
}

[[gnu::noinline]] void FlitRouterBank::drop_small(FlitChannelRequest* requests, std::size_t count) const {
  const bool has_slots = fabric_.slot_flits != 0;
  for (std::size_t i = 0; i < count; ++i) {
    FlitChannelRequest& request = requests[i];
    request.mask = has_slots ? with_slots(request.input, request.port, request.mask)
                             : with_room(request.input, request.port, request.mask);
  }
}

[[gnu::noinline]] FlitRequest FlitRouterBank::choose_output(FlitPlace input) const {
  const std::uint32_t router = fabric_.router_of(input);
  const auto room = [&](std::uint32_t number, std::uint64_t mask) {
    const FlitPlace port = fabric_.place(router, number);
    std::uint64_t usable = mask & state_.free[port / 64] >> port % 64;
    if (fabric_.is_cut_through)
      usable = fabric_.slot_flits == 0 ? with_room(input, port, usable) : with_slots(input, port, usable);
    std::int64_t most = -1;
    for (std::uint64_t rest = usable; rest != 0; rest &= rest - 1) {
      const std::uint32_t virtual_channel = lowest_bit(rest);
      most = std::max<std::int64_t>(most, state_.outputs[port + virtual_channel].credits);
    }
    return most;
  };
  const std::uint32_t packet = state_.flits[input].flit.packet();
  const FlitRequest request = routes_.most_room(router, fabric_.channel_of(input), packet, room);
  return routes_.for_now(request);
}

}  // namespace apenet
