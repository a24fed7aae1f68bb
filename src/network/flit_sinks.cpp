#include "network/flit_sinks.hpp"

#include <algorithm>
#include <utility>

#include "kernel/check.hpp"

namespace apenet {

FlitSinks::FlitSinks(FlitFabric& fabric, std::vector<FlitPort> exits, std::int64_t buffer_bytes)
    : fabric_(fabric),
      room_bytes_(exits.size(), buffer_bytes),
      waiting_(exits.size()),
      order_(exits.size()),
      held_(exits.size() * fabric.virtual_channels),
      exits_(std::move(exits)) {}

[[gnu::always_inline]] inline void FlitSinks::accept(NodeId node, std::uint32_t channel, Flit flit,
                                                     FlitCycle cycle) {
  const FlitPort& exit = exits_[node];
  const std::uint32_t packet = flit.packet();
  fabric_.credits_on_wires.push(cycle + exit.credit_delay, exit.list, {exit.far_end + channel});
  if (flit.is_head()) room_bytes_[node] -= fabric_.routes[packet].wire_bytes;
  if (flit.is_tail()) {
    arrived_->push_back({packet, flit.is_head() ? cycle : heads_[packet]});
  } else if (flit.is_head()) {
    if (packet >= heads_.size()) heads_.resize(packet + 1);
    heads_[packet] = cycle;
  }
}

[[gnu::always_inline]] inline void FlitSinks::receive(NodeId node, std::uint32_t channel, Flit flit,
                                                      FlitCycle cycle) {
  const bool has_room = !flit.is_head() || room_bytes_[node] >= fabric_.routes[flit.packet()].wire_bytes;
  const std::uint64_t bit = std::uint64_t{1} << channel;
  const bool is_waiting = (waiting_[node] & bit) != 0;
  if (has_room && !is_waiting && (waiting_[node] == 0 || !flit.is_head())) [[likely]] {
    accept(node, channel, flit, cycle);
    return;
  }
  std::vector<Flit>& held = held_[std::size_t{node} * fabric_.virtual_channels + channel];
  held.push_back(flit);
  APENET_CHECK(held.size() <= fabric_.timing.buffer_flits, "node %u, channel %u: a flit without a credit",
               node, channel);
  if (is_waiting) return;
  waiting_[node] |= bit;
  order_[node].push_back(static_cast<std::uint8_t>(channel));
}

void FlitSinks::tick(FlitCycle cycle, std::vector<Arrived>& arrived) {
  arrived_ = &arrived;
  if (!released_.empty()) {
    std::sort(released_.begin(), released_.end());
    for (const NodeId node : released_) admit_waiting(node, cycle);
    released_.clear();
  }
  fabric_.flits_on_wires.take(cycle, fabric_.list_of_cards(), [&](const FlitArrival& arrival) {
    receive(fabric_.router_of(arrival.place), fabric_.channel_of(arrival.place), arrival.flit, cycle);
  });
}

void FlitSinks::release(NodeId node, std::uint32_t bytes) {
  room_bytes_[node] += bytes;
  if (waiting_[node] != 0) released_.push_back(node);
}

// There is more room: those who wait go on, in their order. The header at the front of the order has its turn
// though others wait; one behind it in the same channel queues up again.
void FlitSinks::admit_waiting(NodeId node, FlitCycle cycle) {
  std::vector<std::uint8_t>& order = order_[node];
  while (!order.empty()) {
    const std::uint8_t channel = order.front();
    std::vector<Flit>& held = held_[std::size_t{node} * fabric_.virtual_channels + channel];
    if (room_bytes_[node] < fabric_.routes[held.front().packet()].wire_bytes) return;
    order.erase(order.begin());
    waiting_[node] &= ~(std::uint64_t{1} << channel);
    const std::vector<Flit> flits = std::exchange(held, {});
    accept(node, channel, flits.front(), cycle);
    for (std::size_t i = 1; i < flits.size(); ++i) receive(node, channel, flits[i], cycle);
  }
}

}  // namespace apenet
